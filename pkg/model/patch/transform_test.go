package patch_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/patch"
)

func TestTransform(t *testing.T) {
	for name, test := range map[string]struct {
		fill func(p *patch.Patch)
		want m
	}{
		"a list is changed based on its current state": {
			func(p *patch.Patch) { p.Apply(write("y")) },
			m{"spec": m{"items": []any{"x", "y"}}},
		},
		"an unchanged object needs no patch": {func(p *patch.Patch) { p.Apply(nothing) }, nil},
		"values come first, whatever the order": {
			func(p *patch.Patch) { p.Apply(write("y")); p.Set([]string{"w"}, "spec", "items") },
			m{"spec": m{"items": []any{"w", "y"}}},
		},
		"transformations see no removed field": {
			func(p *patch.Patch) {
				p.Remove("spec", "items")
				p.Apply(write("y"))
			},
			m{"spec": m{"items": []any{"y"}}},
		},
		"Go's own types become JSON's": {
			func(p *patch.Patch) {
				p.Apply(func(obj *unstructured.Unstructured) error {
					obj.Object["spec"].(m)["size"] = 5
					obj.Object["spec"].(m)["selector"] = map[string]string{"app": "web"}
					return nil
				})
				p.Apply(func(obj *unstructured.Unstructured) error {
					size, _, err := unstructured.NestedInt64(obj.Object, "spec", "size")
					obj.Object["spec"].(m)["size"] = size + 1
					return err
				})
			},
			m{"spec": m{"size": int64(6)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var p patch.Patch
			test.fill(&p)
			before := body()
			got, err := p.Resolve(before)
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, %v; want %v", got, err, test.want)
			}
			if !reflect.DeepEqual(before, body()) {
				t.Errorf("the body has changed: %v", before)
			}
		})
	}
}

func TestResolveCopiesValuesOfTransformations(t *testing.T) {
	var p patch.Patch
	kept := []any{"x", "y"}
	p.Apply(func(obj *unstructured.Unstructured) error {
		obj.Object["spec"].(m)["items"] = kept
		return nil
	})
	got, err := p.Resolve(body())
	kept[0] = "z"
	if want := (m{"spec": m{"items": []any{"x", "y"}}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

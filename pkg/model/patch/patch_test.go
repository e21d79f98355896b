package patch_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/patch"
)

func TestEmptyReportsPatchesWithoutRequests(t *testing.T) {
	for name, test := range map[string]struct {
		fill func(p *patch.Patch)
		want bool
	}{
		"the zero patch":      {func(*patch.Patch) {}, true},
		"added empty patches": {func(p *patch.Patch) { p.Add(nil); p.Add(&patch.Patch{}) }, true},
		"a value":             {func(p *patch.Patch) { p.Set(1, "a") }, false},
		"a removal":           {func(p *patch.Patch) { p.Remove("a") }, false},
		"a transformation":    {func(p *patch.Patch) { p.Apply(nothing) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var p patch.Patch
			test.fill(&p)
			if p.Empty() != test.want {
				t.Errorf("want %v", test.want)
			}
		})
	}
}

func nothing(*unstructured.Unstructured) error { return nil }

// write returns a transformation that appends to spec.items.
func write(item string) patch.Transform {
	return func(obj *unstructured.Unstructured) error {
		items, _, err := unstructured.NestedStringSlice(obj.Object, "spec", "items")
		if err != nil {
			return err
		}
		return unstructured.SetNestedStringSlice(obj.Object, append(items, item), "spec", "items")
	}
}

func TestAdd(t *testing.T) {
	var first, second patch.Patch
	first.Set(2, "spec", "size")
	first.Set("first", "status", "a")
	first.Apply(write("first"))
	second.Set(3, "spec", "size")
	second.Apply(write("second"))
	first.Add(&second)
	second.Set(4, "spec", "size")

	got, err := first.Resolve(body())
	want := m{
		"spec":   m{"size": int64(3), "items": []any{"x", "first", "second"}},
		"status": m{"a": "first"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

// A field is one text, or its keys, as for views and filters.
func TestFieldIsOneTextOrItsKeys(t *testing.T) {
	for text, set := range map[string]func(p *patch.Patch){
		`{"status":{"phase":"x"}}`:                      func(p *patch.Patch) { p.Set("x", "status.phase") },
		`{"metadata":{"labels":{"example.com/a":"x"}}}`: func(p *patch.Patch) { p.Set("x", "/metadata/labels/example.com~1a") },
		`{"metadata":{"labels":{"example.com/b":"x"}}}`: func(p *patch.Patch) { p.Set("x", "metadata", "labels", "example.com/b") },
		`{"spec":{"size":null}}`:                        func(p *patch.Patch) { p.Remove("spec.size") },
	} {
		var p patch.Patch
		set(&p)
		got, err := p.Resolve(map[string]any{"spec": map[string]any{"size": int64(1)}})
		if written, _ := json.Marshal(got); err != nil || string(written) != text {
			t.Errorf("got %s, %v, want %s", written, err, text)
		}
	}
	for want, fields := range map[string][]string{
		`write all of its keys, ["status" "a" "b"], or one text, "status.a.b"`: {"status.a", "b"},
		`field "a..b" has an empty part`:                                       {"a..b"},
		`field "metadata.labels.a/b" has a slash`:                              {"metadata.labels.a/b"},
		`has an empty part`:                                                    {"status", ""},
	} {
		var p patch.Patch
		p.Set("x", fields...)
		if _, err := p.Resolve(map[string]any{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAddItself(t *testing.T) {
	var p patch.Patch
	p.Apply(write("y"))
	p.Add(&p)
	got, err := p.Resolve(body())
	if want := (m{"spec": m{"items": []any{"x", "y", "y"}}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestPatchIsSafeForConcurrentUse(t *testing.T) {
	var p, other patch.Patch
	other.SetAnnotation("other", "x")
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			p.SetLabel(fmt.Sprintf("label-%d", i), "x")
			p.Add(&other)
			p.Apply(nothing)
			_, _ = p.Resolve(body())
			p.Empty()
		})
	}
	group.Wait()
	got, err := p.Resolve(m{})
	metadata, _ := got["metadata"].(m)
	labels, _ := metadata["labels"].(m)
	if err != nil || len(labels) != 16 {
		t.Errorf("got %v, %v", got, err)
	}
}

// A daemon may set the same field again and again.
func TestRepeatedValuesDoNotAccumulate(t *testing.T) {
	var p patch.Patch
	one := testing.AllocsPerRun(10, func() { _, _ = p.Resolve(nil) })
	for range 1000 {
		p.Set("x", "status", "a", "b")
		p.Set("x", "status", "a")
	}
	if many := testing.AllocsPerRun(10, func() { _, _ = p.Resolve(nil) }); many > one+20 {
		t.Errorf("%v allocations for one field, %v for none", many, one)
	}
	if got, err := p.Resolve(nil); err != nil || !strings.Contains(fmt.Sprint(got), "a:x") {
		t.Errorf("got %v, %v", got, err)
	}
}

package patch_test

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/model/patch"
)

type m = map[string]any

func body() m {
	return m{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": m{"name": "example", "uid": "u1", "resourceVersion": "7", "labels": m{"a": "1", "b": "2"}},
		"spec":     m{"size": int64(1), "items": []any{"x"}, "selector": m{"app": "web"}},
	}
}

func TestResolve(t *testing.T) {
	for name, test := range map[string]struct {
		fill func(p *patch.Patch)
		want m
	}{
		"an empty patch changes nothing":       {func(*patch.Patch) {}, nil},
		"a value is set":                       {func(p *patch.Patch) { p.Set(2, "spec", "size") }, m{"spec": m{"size": int64(2)}}},
		"the same value changes nothing":       {func(p *patch.Patch) { p.Set(1, "spec", "size") }, nil},
		"an equal number changes nothing":      {func(p *patch.Patch) { p.Set(1.0, "spec", "size") }, nil},
		"an equal list changes nothing":        {func(p *patch.Patch) { p.Set([]string{"x"}, "spec", "items") }, nil},
		"mappings are created on the way":      {func(p *patch.Patch) { p.Set("x", "status", "a", "b") }, m{"status": m{"a": m{"b": "x"}}}},
		"scalars on the way are replaced":      {func(p *patch.Patch) { p.Set("x", "spec", "size", "a") }, m{"spec": m{"size": m{"a": "x"}}}},
		"an empty mapping is set":              {func(p *patch.Patch) { p.Set(m{}, "spec", "emptyDir") }, m{"spec": m{"emptyDir": m{}}}},
		"a set mapping replaces the whole one": {func(p *patch.Patch) { p.Set(m{"tier": "db"}, "spec", "selector") }, m{"spec": m{"selector": m{"tier": "db", "app": nil}}}},
		"a merged mapping keeps other keys":    {func(p *patch.Patch) { p.Merge(m{"spec": m{"selector": m{"tier": "db"}}}) }, m{"spec": m{"selector": m{"tier": "db"}}}},
		"a merged null removes":                {func(p *patch.Patch) { p.Merge(m{"spec": m{"size": nil}}) }, m{"spec": m{"size": nil}}},
		"a merged list replaces":               {func(p *patch.Patch) { p.Merge(m{"spec": m{"items": []any{}}}) }, m{"spec": m{"items": []any{}}}},
		"nothing merged changes nothing":       {func(p *patch.Patch) { p.Merge(nil) }, nil},
		"a field is removed":                   {func(p *patch.Patch) { p.Remove("spec", "size") }, m{"spec": m{"size": nil}}},
		"a nil value removes too":              {func(p *patch.Patch) { p.Set(nil, "spec", "size") }, m{"spec": m{"size": nil}}},
		"a nil map removes too":                {func(p *patch.Patch) { p.Set(map[string]string(nil), "spec", "size") }, m{"spec": m{"size": nil}}},
		"an absent field is not removed again": {func(p *patch.Patch) { p.Remove("spec", "mode") }, nil},
		"removing creates no mappings":         {func(p *patch.Patch) { p.Remove("status", "a", "b") }, nil},
		"removing replaces no scalars":         {func(p *patch.Patch) { p.Remove("spec", "size", "x") }, nil},
		"merged removals create no mappings":   {func(p *patch.Patch) { p.Merge(m{"status": m{"a": m{"b": nil}}}) }, nil},
		"labels are set":                       {func(p *patch.Patch) { p.SetLabel("a", "x"); p.SetLabel("b", "2") }, m{"metadata": m{"labels": m{"a": "x"}}}},
		"annotations with dots are set":        {func(p *patch.Patch) { p.SetAnnotation("example.com/a.b", "x") }, m{"metadata": m{"annotations": m{"example.com/a.b": "x"}}}},
		"the last value wins":                  {func(p *patch.Patch) { p.Set(2, "spec", "size"); p.Set(3, "spec", "size") }, m{"spec": m{"size": int64(3)}}},
		"a removal after a value wins":         {func(p *patch.Patch) { p.Set("x", "status", "a"); p.Remove("status", "a") }, nil},
		"a merge after a value wins":           {func(p *patch.Patch) { p.Set(2, "spec", "size"); p.Merge(m{"spec": m{"size": 3}}) }, m{"spec": m{"size": int64(3)}}},
		"a value after a merge wins":           {func(p *patch.Patch) { p.Merge(m{"spec": m{"size": 3}}); p.Set(2, "spec", "size") }, m{"spec": m{"size": int64(2)}}},
		"a field inside a set value is set":    {func(p *patch.Patch) { p.Set(m{"a": "x"}, "status"); p.Set("y", "status", "b") }, m{"status": m{"a": "x", "b": "y"}}},
		"structs are taken through JSON": {
			func(p *patch.Patch) { p.Set(metav1.OwnerReference{Name: "x"}, "status", "owner") },
			m{"status": m{"owner": m{"apiVersion": "", "kind": "", "name": "x", "uid": ""}}},
		},
		"times are taken through JSON": {
			func(p *patch.Patch) { p.Set(time.Unix(0, 0).UTC(), "status", "at") },
			m{"status": m{"at": "1970-01-01T00:00:00Z"}},
		},
		"finalizers may be patched": {
			func(p *patch.Patch) { p.Set([]string{"example.com/f"}, "metadata", "finalizers") },
			m{"metadata": m{"finalizers": []any{"example.com/f"}}},
		},
		"owner references may be patched": {
			func(p *patch.Patch) { p.Set([]any{m{"name": "x"}}, "metadata", "ownerReferences") },
			m{"metadata": m{"ownerReferences": []any{m{"name": "x"}}}},
		},
		"an unchanged identity may be set": {
			func(p *patch.Patch) { p.Set("example", "metadata", "name") }, nil,
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

func TestResolveCopiesItsInput(t *testing.T) {
	var p patch.Patch
	given, inner := []any{"x"}, m{"list": []any{"x"}}
	p.Set(given, "status", "a")
	p.Merge(m{"status": m{"b": inner}})
	given[0], inner["list"].([]any)[0], inner["more"] = "y", "y", "y"
	got, err := p.Resolve(body())
	if want := (m{"status": m{"a": []any{"x"}, "b": m{"list": []any{"x"}}}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestResolveWithoutObject(t *testing.T) {
	var p patch.Patch
	p.Set("x", "spec", "a")
	p.Apply(func(obj *unstructured.Unstructured) error {
		return unstructured.SetNestedField(obj.Object, "y", "spec", "b")
	})
	got, err := p.Resolve(nil)
	if want := (m{"spec": m{"a": "x", "b": "y"}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	p = patch.Patch{}
	p.Apply(func(*unstructured.Unstructured) error { return nil })
	if got, err := p.Resolve(nil); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestResolveAgainAfterAConflict(t *testing.T) {
	var p patch.Patch
	p.Set(map[string]any{"tier": "db"}, "spec", "selector")
	fresh := body()
	fresh["spec"].(m)["selector"].(m)["zone"] = "z"
	for _, test := range []struct{ body, want m }{
		{body(), m{"spec": m{"selector": m{"app": nil, "tier": "db"}}}},
		{fresh, m{"spec": m{"selector": m{"app": nil, "tier": "db", "zone": nil}}}},
	} {
		got, err := p.Resolve(test.body)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("got %v, %v; want %v", got, err, test.want)
		}
	}
}

// FuzzResolve merges arbitrary patches, and expects the result of RFC 7386, except for
// mappings created only for removals.
func FuzzResolve(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, left, right []byte) {
		from, merge := mappings(t, left, right)
		var p patch.Patch
		p.Merge(merge)
		var twin patch.Patch
		twin.Apply(func(obj *unstructured.Unstructured) error {
			obj.Object = patch.ApplyMerge(obj.Object, patch.Minimal(obj.Object, merge))
			return nil
		})
		before := runtime.DeepCopyJSON(from)
		got, err := p.Resolve(from)
		same, twinErr := twin.Resolve(from)
		if (err == nil) != (twinErr == nil) || !reflect.DeepEqual(got, same) {
			t.Fatalf("values give %v, %v; a transformation gives %v, %v", got, err, same, twinErr)
		}
		if !reflect.DeepEqual(from, before) {
			t.Fatalf("the body has changed: %v", from)
		}
		if err == nil {
			if again, err := p.Resolve(patch.ApplyMerge(from, got)); again != nil || err != nil {
				t.Fatalf("resolved again: %v, %v", again, err)
			}
		}
	})
}

package webhook_test

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

func TestMutatingHandlersChangeTheObject(t *testing.T) {
	change := func(by func(p *patch.Patch)) func(context.Context, *handler.Call) error {
		return func(_ context.Context, a *handler.Call) error { by(a.Context.Patch); return nil }
	}
	tests := map[string]struct {
		spec   m
		change func(p *patch.Patch)
		want   m
	}{
		"nothing is patched":        {m{"a": "b"}, func(*patch.Patch) {}, m{"a": "b"}},
		"nothing changes":           {m{"a": "b"}, func(p *patch.Patch) { p.Set("b", "spec", "a") }, m{"a": "b"}},
		"a value is added":          {m{"a": "b"}, func(p *patch.Patch) { p.Set(1, "spec", "c") }, m{"a": "b", "c": 1.0}},
		"a value is changed":        {m{"a": "b"}, func(p *patch.Patch) { p.Set("c", "spec", "a") }, m{"a": "c"}},
		"a value is removed":        {m{"a": "b", "c": 1}, func(p *patch.Patch) { p.Remove("spec", "a") }, m{"c": 1.0}},
		"a null in a merge removes": {m{"a": "b"}, func(p *patch.Patch) { p.Merge(m{"spec": m{"a": nil}}) }, m{}},
		"keys that need escaping": {m{"a/b": 1, "c~d": 2, "e~1f": 3}, func(p *patch.Patch) {
			p.Set("x", "spec", "a/b")
			p.Remove("spec", "c~d")
			p.Set("y", "spec", "e~1f")
			p.Set("z", "spec", "g/~h")
		}, m{"a/b": "x", "e~1f": "y", "g/~h": "z"}},
		"a list is replaced":                                 {m{"l": []any{1, 2, 3}}, func(p *patch.Patch) { p.Set([]any{3, 1}, "spec", "l") }, m{"l": []any{3.0, 1.0}}},
		"an empty mapping is set":                            {m{}, func(p *patch.Patch) { p.Set(m{}, "spec", "e") }, m{"e": m{}}},
		"nothing but the removal of a missing key is merged": {m{}, func(p *patch.Patch) { p.Merge(m{"spec": m{"e": m{"f": nil}}}) }, m{}},
		"missing mappings on the path are created":           {m{}, func(p *patch.Patch) { p.Set(true, "spec", "a", "b", "c") }, m{"a": m{"b": m{"c": true}}}},
		"a transformation":                                   {m{"l": []any{"a"}}, func(p *patch.Patch) { p.Apply(appending) }, m{"l": []any{"a", "b"}}},
		"a large number next to a change is kept":            {m{"n": int64(9007199254740993)}, func(p *patch.Patch) { p.Set("x", "spec", "a") }, m{"n": 9007199254740992.0, "a": "x"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := &handlers{t: t}
			h.mutate("a", change(test.change))
			object := example(test.spec)
			got := ask(t, h.serve(), "/a", review(object))
			if !got.Allowed {
				t.Fatalf("got %+v", got.Result)
			}
			if strings.HasPrefix(name, "nothing") != (got.Patch == nil) {
				t.Errorf("got the patch %s", got.Patch)
			}
			after := patched(t, object, got)
			if spec := after["spec"].(m); !reflect.DeepEqual(decoded(t, spec), decoded(t, test.want)) {
				t.Errorf("%s leads to %v, want %v", got.Patch, spec, test.want)
			}
		})
	}
}

func appending(obj *unstructured.Unstructured) error {
	list, _, err := unstructured.NestedStringSlice(obj.Object, "spec", "l")
	if err != nil {
		return err
	}
	return unstructured.SetNestedStringSlice(obj.Object, append(list, "b"), "spec", "l")
}

func TestEachMutatingHandlerSeesTheEarlierChanges(t *testing.T) {
	h := &handlers{t: t}
	var sizes []int64
	double := func(a *handler.Call) {
		size, _ := a.Body().Spec().Int64("size")
		sizes = append(sizes, size)
		a.Context.Patch.Set(size*2, "spec", "size")
		a.Context.Patch.SetLabel("doubled", "yes")
	}
	h.mutate("a", func(_ context.Context, a *handler.Call) error { double(a); return nil })
	h.mutate("c", func(_ context.Context, a *handler.Call) error { double(a); return nil },
		handler.Labels(map[string]handler.Matcher{"doubled": handler.Present()}))
	h.validate("d", func(_ context.Context, a *handler.Call) error {
		size, _ := a.Body().Spec().Int64("size")
		sizes = append(sizes, size)
		if !a.Transition().Old.View().Has("spec", "size") || a.Transition().Diff.String() != `add metadata.labels.doubled: "yes"; change spec.size: 1 -> 12` {
			t.Errorf("got %s", a.Transition().Diff)
		}
		return nil
	})
	object := example(m{"size": 3})
	got := ask(t, h.serve(), "/", review(object, m{"operation": "UPDATE", "oldObject": example(m{"size": 1})}))
	if size := patched(t, object, got)["spec"].(m)["size"]; size != 12.0 || !slices.Equal(sizes, []int64{3, 6, 12}) {
		t.Errorf("got %v, through %v", size, sizes)
	}
}

func TestInvalidChangesAreErrors(t *testing.T) {
	tests := map[string]struct {
		declare func(h *handlers, fn func(context.Context, *handler.Call) error)
		change  func(p *patch.Patch)
		says    string
	}{
		"by a validating handler": {
			func(h *handlers, fn func(context.Context, *handler.Call) error) { h.validate("a", fn) },
			func(p *patch.Patch) { p.Set(1, "spec", "size") }, "declare it with OnMutate",
		},
		"of the identity": {
			func(h *handlers, fn func(context.Context, *handler.Call) error) { h.mutate("a", fn) },
			func(p *patch.Patch) { p.Set("x", "metadata", "uid") }, "metadata.uid",
		},
		"to a value that is not JSON": {
			func(h *handlers, fn func(context.Context, *handler.Call) error) { h.mutate("a", fn) },
			func(p *patch.Patch) { p.Set(func() {}, "spec", "size") }, "spec.size",
		},
		"by a failing transformation": {
			func(h *handlers, fn func(context.Context, *handler.Call) error) { h.mutate("a", fn) },
			func(p *patch.Patch) {
				p.Apply(func(*unstructured.Unstructured) error { return handler.Reject("no", 422) })
			}, "failed: no",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := &handlers{t: t}
			test.declare(h, func(_ context.Context, a *handler.Call) error { test.change(a.Context.Patch); return nil })
			got := ask(t, h.serve(), "/a", review(example(nil)))
			if got.Allowed || got.Patch != nil || !strings.Contains(got.Result.Message, test.says) {
				t.Errorf("got %+v", got.Result)
			}
		})
	}
}

// decoded returns the value with all numbers of one Go type.
func decoded(t testing.TB, value m) m {
	t.Helper()
	var plain m
	if err := json.Unmarshal([]byte(encode(t, value)), &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

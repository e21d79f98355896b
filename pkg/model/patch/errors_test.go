package patch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/patch"
)

func TestResolveRejects(t *testing.T) {
	cases := map[string]struct {
		fill func(p *patch.Patch)
		want []string // parts of the message
	}{
		"a value that is not JSON, by its field": {
			func(p *patch.Patch) { p.Set(make(chan int), "spec", "size") }, []string{`"spec.size"`, "chan int"},
		},
		"a value inside a mapping, by its field": {
			func(p *patch.Patch) { p.Set(m{"a": m{"b": make(chan int)}}, "spec") }, []string{`"spec.a.b"`, "chan int"},
		},
		"a merged value, by its field": {
			func(p *patch.Patch) { p.Merge(m{"spec": m{"a": 1, "b": func() {}}}) }, []string{`"spec.b"`, "func()"},
		},
		"the replacement of the whole object": {
			func(p *patch.Patch) { p.Set(m{}) }, []string{"name a field"},
		},
		"the removal of the whole object": {
			func(p *patch.Patch) { p.Remove() }, []string{"name a field"},
		},
		"the removal of the metadata": {
			func(p *patch.Patch) { p.Remove("metadata") }, []string{`"metadata"`, "patch its fields"},
		},
		"a transformation that empties the object": {
			func(p *patch.Patch) {
				p.Apply(func(obj *unstructured.Unstructured) error { obj.Object = nil; return nil })
			}, []string{`"apiVersion"`},
		},
	}
	for _, field := range []string{
		"name", "namespace", "uid", "resourceVersion", "managedFields", "generation",
		"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	} {
		cases["metadata."+field+" as a value"] = struct {
			fill func(p *patch.Patch)
			want []string
		}{func(p *patch.Patch) { p.Set("x", "metadata", field) }, []string{`"metadata.` + field + `"`, "leave it out"}}
	}
	for _, field := range []string{"apiVersion", "kind"} {
		cases[field+" in a transformation"] = struct {
			fill func(p *patch.Patch)
			want []string
		}{func(p *patch.Patch) {
			p.Apply(func(obj *unstructured.Unstructured) error { delete(obj.Object, field); return nil })
		}, []string{`"` + field + `"`, "leave it out"}}
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var p patch.Patch
			test.fill(&p)
			got, err := p.Resolve(body())
			var fieldError *patch.FieldError
			if got != nil || !errors.As(err, &fieldError) || errors.Unwrap(fieldError) == nil {
				t.Fatalf("got %v, %v", got, err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %q, want %q in it", err, part)
				}
			}
		})
	}
}

func TestLaterValueTakesTheErrorBack(t *testing.T) {
	var p patch.Patch
	p.Set(make(chan int), "spec", "size")
	p.Set(2, "spec", "size")
	if _, err := p.Resolve(body()); err != nil {
		t.Error(err)
	}
}

func TestTransformErrors(t *testing.T) {
	cause := errors.New("no room")
	for name, test := range map[string]struct {
		transform patch.Transform
		want      string
		wraps     error
		stack     bool
	}{
		"an error is passed on": {
			func(*unstructured.Unstructured) error { return cause }, "the change of the object failed: no room", cause, false,
		},
		"a panic becomes an error": {
			func(*unstructured.Unstructured) error { panic("no room") }, "failed: panic: no room", nil, true,
		},
		"a panic with an error keeps the error": {
			func(*unstructured.Unstructured) error { panic(fmt.Errorf("sorry: %w", cause)) }, "panic: sorry: no room", cause, true,
		},
		"a missing function is an error": {nil, "the change of the object failed: panic", nil, true},
		"a result that is no JSON is an error": {
			func(obj *unstructured.Unstructured) error { obj.Object["spec"] = m{"a": make(chan int)}; return nil },
			`"spec.a"`, nil, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var p patch.Patch
			p.Set(2, "spec", "size")
			p.Apply(test.transform)
			got, err := p.Resolve(body())
			var failed *patch.TransformError
			if got != nil || !errors.As(err, &failed) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, %v; want %q", got, err, test.want)
			}
			if test.wraps != nil && !errors.Is(err, test.wraps) {
				t.Errorf("%v does not wrap %v", err, test.wraps)
			}
			if (len(failed.Stack) > 0) != test.stack {
				t.Errorf("stack: %s", failed.Stack)
			}
		})
	}
}

func TestObjectThatIsNoJSONCannotBeTransformed(t *testing.T) {
	var p patch.Patch
	p.Apply(nothing)
	if _, err := p.Resolve(m{"spec": make(chan int)}); err == nil {
		t.Error("no error")
	}
}

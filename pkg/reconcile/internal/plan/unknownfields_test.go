package plan

import (
	"context"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func forField(t *testing.T, field string) registry.Handlers {
	t.Helper()
	fn := handler.Function{Origin: t, Call: func(context.Context, *handler.Call) (any, error) { return nil, nil }}
	d, err := handler.Update(selector.New("any"), fn, handler.ID("fn"), handler.Field(field))
	if err != nil {
		t.Fatal(err)
	}
	return registry.Handlers{d}
}

func TestFieldsThatObjectsDoNotHaveAreFound(t *testing.T) {
	shops := selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "shops", Kind: "Shop"}
	pods := selector.Resource{Version: "v1", Plural: "pods", Kind: "Pod"}
	definition := func(of m) m {
		return m{"spec": m{"versions": []any{m{"name": "v1", "schema": m{"openAPIV3Schema": properties(m{"spec": of})}}}}}
	}
	sized := definition(properties(m{"size": m{"type": "integer"}}))
	for name, test := range map[string]struct {
		field      string
		of         selector.Resource
		definition map[string]any
		want       string // empty if nothing is found
	}{
		"a field of the schema":               {"spec.size", shops, sized, ""},
		"a mistyped field":                    {"spec.siez", shops, sized, `the update handler "fn/spec.siez": the objects of shops.v1.kopf.dev have no field "spec.siez": did you mean "spec.size"?`},
		"a field unlike any other":            {"spec.entirely", shops, sized, `have no field "spec.entirely"`},
		"an open schema":                      {"spec.siez", shops, definition(keeping()), ""},
		"a resource without a known schema":   {"spec.siez", shops, nil, ""},
		"a resource of Kubernetes":            {"spec.nodeName", pods, nil, ""},
		"a mistyped field of such a resource": {"spec.nodeNam", pods, nil, `the objects of pods.v1 have no field "spec.nodeNam": did you mean "spec.nodeName"?`},
		"a field of a newer Kubernetes":       {"spec.fromTheFuture", pods, nil, ""},
		"a definition besides a Go type":      {"spec.size", pods, sized, ""},
	} {
		t.Run(name, func(t *testing.T) {
			declared := forField(t, test.field)
			if !HasFields(declared) {
				t.Error("the handler has no field")
			}
			got := UnknownFields(declared, test.of, test.definition, scheme.Scheme)
			switch {
			case test.want == "" && len(got) > 0:
				t.Errorf("got %v", got)
			case test.want != "" && (len(got) != 1 || !strings.HasSuffix(got[0].Error(), test.want) || !strings.Contains(got[0].Error(), ".go:")):
				t.Errorf("got %v", got)
			}
		})
	}
	if found := UnknownFields(forField(t, "spec.nodeNam"), pods, nil, nil); found != nil || HasFields(nil) {
		t.Errorf("got %v", found)
	}
}

// The object of a review of a subresource can be of another kind.
func TestFieldsOfOtherObjectsAreNotChecked(t *testing.T) {
	fn := handler.Function{Origin: t, Call: func(context.Context, *handler.Call) (any, error) { return nil, nil }}
	review, err := handler.Validate(selector.New("any"), fn, handler.ID("review"), handler.Field("spec.siez"), handler.Subresource("scale"))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := handler.Update(selector.New("any"), fn, handler.ID("whole"))
	if err != nil {
		t.Fatal(err)
	}
	declared := registry.Handlers{review, whole}
	of := selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "shops", Kind: "Shop"}
	definition := defining(properties(m{"spec": properties(m{"size": m{"type": "integer"}})}))
	if got := UnknownFields(declared, of, definition, nil); len(got) > 0 || HasFields(declared) {
		t.Errorf("got %v; they have fields: %t", got, HasFields(declared))
	}
}

// A daemon can look at the usual parts of objects, whatever its objects have.
func TestUsualPartsAreNoMistakes(t *testing.T) {
	shops := selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "shops", Kind: "Shop"}
	schema := properties(m{"spec": properties(m{"data": m{"type": "string"}})})
	definition := m{"spec": m{"versions": []any{m{"name": "v1", "schema": m{"openAPIV3Schema": schema}}}}}
	for field, want := range map[string]int{"spec": 0, "status": 0, "data": 0, "metadata": 0, "stauts": 1, "status.phase": 1} {
		fn := handler.Function{Origin: t, Call: func(context.Context, *handler.Call) (any, error) { return nil, nil }}
		d, err := handler.Daemon(selector.New("any"), fn, handler.ID("fn"), handler.WakeOn(field))
		if err != nil {
			t.Fatal(err)
		}
		if got := UnknownFields(registry.Handlers{d}, shops, definition, scheme.Scheme); len(got) != want {
			t.Errorf("%s: got %v", field, got)
		}
	}
	if got := UnknownFields(forField(t, "status"), shops, definition, scheme.Scheme); len(got) != 1 {
		t.Errorf("got %v for a handler of changes", got)
	}
	fn := handler.Function{Origin: t, Call: func(context.Context, *handler.Call) (any, error) { return nil, nil }}
	filtered, err := handler.Daemon(selector.New("any"), fn, handler.ID("fn"), handler.Field("status"), handler.WakeOn("spec"))
	if err != nil {
		t.Fatal(err)
	}
	if got := UnknownFields(registry.Handlers{filtered}, shops, definition, scheme.Scheme); len(got) != 1 {
		t.Errorf("got %v for a daemon that looks at another part", got)
	}
}

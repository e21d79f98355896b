package webhook_test

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/webhook"
)

func TestSelectedHandlersAreCalled(t *testing.T) {
	labelled := func(value string) handler.AdmissionOption {
		return handler.Labels(map[string]handler.Matcher{"a": handler.Equal(value)})
	}
	deletion := m{"operation": "DELETE", "object": nil, "oldObject": example(nil)}
	tests := map[string]struct {
		declare func(h *handlers, record func(id string) func(context.Context, *handler.Call) error)
		path    string
		request m
		called  []string
	}{
		"the handler of the path": {
			func(h *handlers, record func(string) func(context.Context, *handler.Call) error) {
				h.validate("a", record("a"))
				h.validate("b", record("b"))
			}, "/b", nil, []string{"b"},
		},
		"the handler of a field, by its path": {
			func(h *handlers, record func(string) func(context.Context, *handler.Call) error) {
				h.validate("a", record("a"), handler.Field("spec.size"))
				h.validate("b", record("b"), handler.Field("spec.none"))
			}, "/a/spec.size", nil, []string{"a"},
		},
		"all handlers, mutating ones first": {
			func(h *handlers, record func(string) func(context.Context, *handler.Call) error) {
				h.validate("a", record("a"))
				h.mutate("b", record("b"))
			}, "/", nil, []string{"b", "a"},
		},
		"all validating handlers": {
			func(h *handlers, record func(string) func(context.Context, *handler.Call) error) {
				h.validate("a", record("a"))
				h.mutate("b", record("b"))
				h.validate("c", record("c"))
			}, "/validating", nil, []string{"a", "c"},
		},
		"all mutating handlers": {
			func(h *handlers, record func(string) func(context.Context, *handler.Call) error) {
				h.validate("a", record("a"))
				h.mutate("b", record("b"))
			}, "/mutating", nil, []string{"b"},
		},
		"only handlers of the operation": {
			func(h *handlers, record func(string) func(context.Context, *handler.Call) error) {
				h.validate("a", record("a"), handler.Operations("UPDATE", "DELETE"))
				h.validate("b", record("b"), handler.Operations("UPDATE"), handler.Operations("CREATE"))
			}, "/", nil, []string{"b"},
		},
		"mutating handlers of deletions only if they ask for them": {
			func(h *handlers, record func(string) func(context.Context, *handler.Call) error) {
				h.mutate("a", record("a"))
				h.mutate("b", record("b"), handler.Operations("DELETE"))
				h.mutate("c", record("c"), handler.Operations("CREATE", "DELETE"))
				h.validate("d", record("d"))
			}, "/", deletion, []string{"b", "c", "d"},
		},
		"handlers of subresources only if they ask for them": {
			func(h *handlers, record func(string) func(context.Context, *handler.Call) error) {
				h.validate("a", record("a"))
				h.validate("b", record("b"), handler.Subresource("status"))
				h.validate("c", record("c"), handler.Subresource("scale"))
				h.validate("d", record("d"), handler.Subresource("*"))
			}, "/", m{"subResource": "status"}, []string{"b", "d"},
		},
		"handlers of the object itself": {
			func(h *handlers, record func(string) func(context.Context, *handler.Call) error) {
				h.validate("b", record("b"), handler.Subresource("status"))
				h.validate("d", record("d"), handler.Subresource("*"))
			}, "/", nil, []string{"d"},
		},
		"handlers whose filters match": {
			func(h *handlers, record func(string) func(context.Context, *handler.Call) error) {
				h.validate("a", record("a"), labelled("b"))
				h.validate("b", record("b"), labelled("x"))
				h.validate("c", record("c"), handler.Field("spec.size"), handler.Value(handler.Equal(1)))
				h.validate("d", record("d"), handler.Field("spec.size"), handler.Value(handler.Equal(2)))
				h.validate("e", record("e"), handlertest.When(func(a *handler.Call) bool {
					return a.Review.Operation == "CREATE" && !a.Transition().Old.Exists()
				}))
			}, "/", nil, []string{"a", "c", "e"},
		},
		"handlers of the resource": {
			func(h *handlers, record func(string) func(context.Context, *handler.Call) error) {
				h.validate("a", record("a"))
				h.add(handler.Validate(selector.New("pods"), handlertest.Function(record("b")), handler.ID("b")))
			}, "/", nil, []string{"a"},
		},
		"a handler that is declared twice, once": {
			func(h *handlers, record func(string) func(context.Context, *handler.Call) error) {
				fn := record("a")
				h.validate("a", fn)
				h.validate("a", fn, handler.Operations("CREATE"))
			}, "/a", nil, []string{"a"},
		},
		"no handlers": {func(*handlers, func(string) func(context.Context, *handler.Call) error) {}, "/", nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var called []string
			h := &handlers{t: t}
			test.declare(h, func(id string) func(context.Context, *handler.Call) error {
				return func(context.Context, *handler.Call) error { called = append(called, id); return nil }
			})
			got := ask(t, h.serve(), test.path, review(example(m{"size": 1}), test.request))
			if !got.Allowed || !slices.Equal(called, test.called) {
				t.Errorf("called %v, want %v: %+v", called, test.called, got)
			}
		})
	}
}

func TestNewHooks(t *testing.T) {
	pods := selector.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Preferred: true}
	h := &handlers{t: t}
	h.validate("a", admit, handler.Operations("CREATE", "UPDATE"), handler.Persistent(), handler.Field("spec.size"))
	h.mutate("b", admit, handler.Subresource("status"), handler.SideEffects(), handler.IgnoreFailures(),
		handler.Labels(map[string]handler.Matcher{"a": handler.Equal("b")}))
	h.add(handler.Validate(selector.New("missing"), handlertest.Function(admit), handler.ID("c")))
	hooks, problems := webhook.NewHooks(h.all, []selector.Resource{pods, resource})
	if len(hooks) != 2 || len(problems) != 1 {
		t.Fatalf("got %v, %v", hooks, problems)
	}
	a, b := hooks[0], hooks[1]
	if a.ID != "a/spec.size" || !a.Validating || !slices.Equal(a.Operations, []string{"CREATE", "UPDATE"}) || !a.Persistent ||
		a.SideEffects || a.IgnoreFailures || a.LabelSelector != nil || a.Resource.GVR() != resource.GVR() {
		t.Errorf("got %+v", a)
	}
	if b.ID != "b" || b.Validating || !slices.Equal(b.Operations, []string{"CREATE", "UPDATE", "CONNECT"}) || b.Persistent || b.Subresource != "status" || !b.SideEffects ||
		!b.IgnoreFailures || len(b.LabelSelector.MatchExpressions) != 1 {
		t.Errorf("got %+v", b)
	}
}

// The handler is called for all resources that it may mean: a check that is not made is
// worse than one that is made too often.
func TestAmbiguousSelectorsHaveHooksForAllResources(t *testing.T) {
	h := &handlers{t: t}
	h.add(handler.Validate(selector.New("kopfexamples"), handlertest.Function(admit), handler.ID("a")))
	other := resource
	other.Group = "another.dev"
	hooks, problems := webhook.NewHooks(h.all, []selector.Resource{other, resource})
	if len(problems) > 0 || len(hooks) != 2 || hooks[0].Resource.Group != "another.dev" || hooks[1].Resource.Group != resource.Group {
		t.Errorf("got %+v, %v", hooks, problems)
	}
}

func TestResourceIsLookedUpByItsName(t *testing.T) {
	h := &handlers{t: t}
	h.validate("a", admit)
	var lookups []schema.GroupVersionResource
	w := h.serve(func(o *webhook.Options) {
		o.Resources = func(gvr schema.GroupVersionResource) (selector.Resource, bool) {
			lookups = append(lookups, gvr)
			return resource, true
		}
	})
	ask(t, w, "/a", review(example(nil)))
	if !slices.Equal(lookups, []schema.GroupVersionResource{resource.GVR()}) {
		t.Errorf("looked up %v", lookups)
	}
}

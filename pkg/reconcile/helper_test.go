package reconcile

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
)

type m = map[string]any

var kex = discovery.SelectedResource{
	Resource: selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Namespaced: true},
}

func keyOf(name string) object.Key {
	return object.Key{Resource: "kopfexamples.v1.kopf.dev", NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

func seen(t *testing.T, version string) *object.Snapshot {
	t.Helper()
	s, err := object.ParseSnapshot([]byte(`{"metadata":{"namespace":"ns","name":"a","uid":"u-1","resourceVersion":"` + version + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func handlersOf(t testing.TB, declare func(r *registry.Registry)) registry.Handlers {
	t.Helper()
	var r registry.Registry
	declare(&r)
	handlers, err := r.Handlers(scheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	return handlers
}

func ignoreEvent(context.Context, *handler.Call) error { return nil }

func ignoreChange(context.Context, *handler.Call) error { return nil }

func parental(r *registry.Registry, called func()) {
	r.Add(handler.Child(selector.New("kopfexamples"), ofPods, handlertest.Function(func(context.Context, *handler.Call) error {
		called()
		return nil
	}), handler.ID("tell")))
}

var ofPods = selector.New("v1", "pods")

var pods = &triggers.ChildKind{Resource: selector.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}, Selectors: []selector.Selector{ofPods}}

func setUpChildren(e *Engine) {
	consumer{e}.setUpChildren(e.resources.get(kex.String()), discovery.SelectedResource{})
}

// observeChild gives an object in the cache a child.
func observeChild(t *testing.T, e *Engine, key object.Key) {
	t.Helper()
	r := e.resources.get(kex.String())
	child := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":%q,"name":%q,"uid":%q,"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}]}}`,
		key.Namespace, key.Name, "child-of-"+key.Name, r.GVK().GroupVersion(), r.Kind, key.Name, r.Cached(key.NamespacedName).GetUID())
	snapshot, err := object.ParseSnapshot(child)
	if err != nil {
		t.Fatal(err)
	}
	e.children.Observe(pods, object.WatchEvent{Type: watch.Added, Snapshot: snapshot})
}

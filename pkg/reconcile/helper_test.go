package reconcile

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
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
	handlers, err := r.Handlers(nil)
	if err != nil {
		t.Fatal(err)
	}
	return handlers
}

func ignoreEvent(context.Context, *handler.Event) error { return nil }

func ignoreChange(context.Context, *handler.Change) error { return nil }

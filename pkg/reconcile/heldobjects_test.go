package reconcile

import (
	"context"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// unfit is a Go type that no object fits.
type unfit struct {
	corev1.Pod
	Spec string `json:"spec"`
}

func (u *unfit) DeepCopyObject() runtime.Object { return u }

func TestHeldObjectsAreCountedByTheLeader(t *testing.T) {
	e := atRest(t, 2, func(r *registry.Registry) {
		r.Add(handler.Timer(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("timer"), handler.WhenDecoded(&unfit{}, func(*handler.Call) (bool, error) { return true, nil })))
	})
	for _, key := range e.keys {
		makePass(t, e, key)
	}
	if held := e.engine.State().Held; len(held) > 0 {
		t.Errorf("a replica on standby counts %v", held)
	}
	e.engine.leading.Store(true)
	want := []metrics.Held{{Resource: kex.String(), Reason: metrics.Misfit, Objects: 2}}
	if held := e.engine.State().Held; !reflect.DeepEqual(held, want) {
		t.Errorf("got %v, want %v", held, want)
	}
	e.engine.objects.remove(e.keys[0], stop.Deleted)
	if held := e.engine.State().Held; len(held) != 1 || held[0].Objects != 1 {
		t.Errorf("got %v after a deletion", held)
	}
}

func TestMessagesNameObjectsAsKubectlDoes(t *testing.T) {
	core := discovery.SelectedResource{Resource: selector.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}}
	for want, target := range map[string]target{
		"kopfexamples.kopf.dev a -n ns": {resource: newResource(watch.NewResource(kex, &kube.Client{}), nil), key: keyOf("a")},
		"nodes a":                       {resource: newResource(watch.NewResource(core, &kube.Client{}), nil), key: object.Key{NamespacedName: types.NamespacedName{Name: "a"}}},
	} {
		if got := target.kubectlName(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

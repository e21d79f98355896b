package reconcile

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

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

// sized is a Go type that objects with a number fit.
type sized struct {
	corev1.Pod
	Spec struct {
		Size int `json:"size"`
	} `json:"spec"`
}

func (s *sized) DeepCopyObject() runtime.Object { return s }

func fits() handler.Option {
	return handler.WhenDecoded(&sized{}, func(*handler.Call) (bool, error) { return true, nil })
}

// The time in which a handler cannot be called does not count against its timeout, whether or
// not the operator was restarted in between.
func TestTimeOfMisfitsDoesNotCount(t *testing.T) {
	for name, restarted := range map[string]bool{"in one process": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			var runtimes []time.Duration
			inCluster(t, func(r *registry.Registry) {
				r.Add(handler.Create(selector.New("kexes"), handlertest.Function(func(_ context.Context, c *handler.Call) error {
					runtimes = append(runtimes, c.Runtime().Round(time.Second))
					return handler.Temporary(errors.New("not yet"), 10*time.Second)
				}), handler.ID("fn"), handler.Timeout(30*time.Second), fits()))
			}, func(t *testing.T, c *cluster) {
				c.create("kexes", "one")
				settle(5 * time.Second)
				c.change("kexes", "one", map[string]any{"size": "many"})
				settle(time.Hour)
				if restarted {
					c.engine.objects.remove(c.key("kexes", "one"), stop.Mismatch)
				}
				c.engine.enqueue(c.key("kexes", "one"))
				settle(time.Hour)
				writes := c.writesOf("one")
				c.change("kexes", "one", map[string]any{"size": 1})
				c.engine.enqueue(c.key("kexes", "one"))
				settle(time.Minute)
				if want := []time.Duration{0, 10 * time.Second, 20 * time.Second}; !slices.Equal(runtimes, want) {
					t.Errorf("the handler was called after %s, want %s", runtimes, want)
				}
				c.expectHandled("kexes", "one")
				if more := c.writesOf("one") - writes; more != 2 {
					t.Errorf("%d writes for two attempts", more)
				}
			})
		})
	}
}

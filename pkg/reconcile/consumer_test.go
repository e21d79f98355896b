package reconcile

import (
	"testing"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func onCreate(r *registry.Registry) {
	r.Add(handler.Create(selector.New("kex"), handlertest.Function(ignoreChange)))
}

func onEvent(r *registry.Registry) {
	r.Add(handler.Watch(selector.New("kex"), handlertest.Function(ignoreEvent)))
}

func TestOnlyListedObjectsAreInitial(t *testing.T) {
	for kind, want := range map[apiwatch.EventType]bool{"": true, apiwatch.Added: false} {
		e := New(Config{})
		r := served(t, e, handlersOf(t, onCreate))
		consumer{e}.Observe(t.Context(), r.Resource, object.WatchEvent{Type: kind, Snapshot: seen(t, "7")})
		if got := e.objects.of(keyOf("a")).initial.Load(); got != want {
			t.Errorf("%q: got %v", kind, got)
		}
	}
}

// An object created under the same name later is new.
func TestStandbyForgetsDeletedObjects(t *testing.T) {
	e := New(Config{})
	r := served(t, e, handlersOf(t, onCreate))
	consumer{e}.Observe(t.Context(), r.Resource, object.WatchEvent{Snapshot: seen(t, "7")})
	consumer{e}.Observe(t.Context(), r.Resource, object.WatchEvent{Type: apiwatch.Deleted, Snapshot: seen(t, "8")})
	if len(e.objects.states) != 0 {
		t.Error("the object is remembered")
	}
}

// Events cost memory, so they are kept only where handlers need them.
func TestBacklogIsEmptyWithoutEventHandlers(t *testing.T) {
	for name, test := range map[string]struct {
		declare func(*registry.Registry)
		want    int
	}{"with event handlers": {onEvent, 1}, "without": {onCreate, 0}} {
		e := New(Config{})
		e.backlog.Open()
		r := served(t, e, handlersOf(t, test.declare))
		consumer{e}.Observe(t.Context(), r.Resource, object.WatchEvent{Type: apiwatch.Added, Snapshot: seen(t, "7")})
		if got := e.backlog.Len(); got != test.want {
			t.Errorf("%s: got %d", name, got)
		}
	}
}

// Without workers, no pass removes the state of objects that are no longer watched.
func TestStandbyForgetsUnwatchedObjects(t *testing.T) {
	e := New(Config{})
	r := served(t, e, handlersOf(t, onEvent))
	consumer{e}.Observe(t.Context(), r.Resource, object.WatchEvent{Snapshot: seen(t, "7")})
	for _, step := range []struct {
		namespace string
		left      int
	}{{"other", 1}, {"ns", 0}} {
		consumer{e}.Forget(t.Context(), r.Resource, object.StreamKey{Resource: r.Name, Namespace: step.namespace})
		if known := e.objects.in(object.StreamKey{Resource: r.Name}); len(known) != step.left || e.backlog.Len() != step.left {
			t.Errorf("after %s has gone: got %v, %d", step.namespace, known, e.backlog.Len())
		}
	}
}

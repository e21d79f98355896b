package reconcile

import (
	"context"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

var kex = selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Namespaced: true}

func seen(t *testing.T, uid, version string) *object.Snapshot {
	t.Helper()
	s, err := object.ParseSnapshot([]byte(`{"metadata":{"namespace":"ns","name":"a","uid":"` + uid + `","resourceVersion":"` + version + `"}}`))
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

func TestTheWatchTellsWhatHasHappened(t *testing.T) {
	tests := map[string]struct {
		happen func(t *testing.T, l cache.ResourceEventHandler)
		want   string
	}{
		"an object was there before": {
			func(t *testing.T, l cache.ResourceEventHandler) { l.OnAdd(seen(t, "u-1", "7"), true) }, "LISTED 7",
		},
		"an object has appeared": {
			func(t *testing.T, l cache.ResourceEventHandler) { l.OnAdd(seen(t, "u-1", "7"), false) }, "ADDED 7",
		},
		"an object has changed": {
			func(t *testing.T, l cache.ResourceEventHandler) { l.OnUpdate(seen(t, "u-1", "7"), seen(t, "u-1", "8")) }, "MODIFIED 8",
		},
		"an object is as it was, and was only listed again": {
			func(t *testing.T, l cache.ResourceEventHandler) { l.OnUpdate(seen(t, "u-1", "7"), seen(t, "u-1", "7")) }, "",
		},
		"an object was replaced while nobody was looking": {
			func(t *testing.T, l cache.ResourceEventHandler) { l.OnUpdate(seen(t, "u-1", "7"), seen(t, "u-2", "9")) }, "DELETED 7, ADDED 9",
		},
		"an object is gone": {
			func(t *testing.T, l cache.ResourceEventHandler) { l.OnDelete(seen(t, "u-1", "8")) }, "DELETED 8",
		},
		"an object has gone while nobody was looking": {
			func(t *testing.T, l cache.ResourceEventHandler) {
				l.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/a", Obj: seen(t, "u-1", "7")})
			}, "DELETED 7",
		},
		"something has gone that nobody knows": {
			func(_ *testing.T, l cache.ResourceEventHandler) {
				l.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/a"})
			}, "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := New(Config{})
			e.lines.open()
			s := newServed(kex, handlersOf(t, func(r *registry.Registry) {
				r.Add(handler.Watch(selector.New("kex"), handler.Function{Event: ignoreEvent}))
			}), nil)
			test.happen(t, e.listener(t.Context(), s))
			if got := told(e.lines.take(keyOf("a"))); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestOnlyWhatWasThereBeforeIsInitial(t *testing.T) {
	for name, listed := range map[string]bool{"listed": true, "watched": false} {
		t.Run(name, func(t *testing.T) {
			e := New(Config{})
			s := newServed(kex, nil, nil)
			e.listener(t.Context(), s).OnAdd(seen(t, "u-1", "7"), listed)
			if got := e.memories.of(keyOf("a")).initial.Load(); got != listed {
				t.Errorf("got %v", got)
			}
		})
	}
}

// One that is created under the name later is a new one.
func TestAStandbyForgetsWhatIsGone(t *testing.T) {
	e := New(Config{})
	s := newServed(kex, handlersOf(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("kex"), handler.Function{Change: ignoreChange}))
	}), nil)
	e.listener(t.Context(), s).OnAdd(seen(t, "u-1", "7"), true)
	e.listener(t.Context(), s).OnDelete(seen(t, "u-1", "8"))
	if len(e.memories.objects) != 0 {
		t.Error("the object is remembered")
	}
}

// Lines cost memory: they are kept only where somebody reads them.
func TestWithoutEventHandlersNoEventsAreKept(t *testing.T) {
	e := New(Config{})
	e.lines.open()
	s := newServed(kex, handlersOf(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("kex"), handler.Function{Change: ignoreChange}))
	}), nil)
	e.listener(t.Context(), s).OnAdd(seen(t, "u-1", "7"), false)
	if len(e.lines.waiting) != 0 {
		t.Errorf("got %v", e.lines.waiting)
	}
}

func TestAServedResourceKnowsItsHandlers(t *testing.T) {
	handlers := handlersOf(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("kex"), handler.Function{Change: ignoreChange}))
		r.Add(handler.ForField(selector.New("kex"), []string{"status.phase"}, handler.Function{Change: ignoreChange}))
		r.Add(handler.Update(selector.New("kex"), handler.Function{Change: ignoreChange}, handler.Field("status", "phase")))
		r.Add(handler.Watch(selector.New("kex"), handler.Function{Event: ignoreEvent}, handler.Field("status.other")))
	})
	s := newServed(kex, handlers, nil)
	if len(s.changing) != 3 || len(s.events) != 1 || len(s.fields) != 1 || s.fields[0].String() != "status.phase" {
		t.Errorf("got %d, %d, %v", len(s.changing), len(s.events), s.fields)
	}
	if got := s.key(seen(t, "u-1", "7")); got != keyOf("a") {
		t.Errorf("got %v", got)
	}
}

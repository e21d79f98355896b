package reconcile

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// hearer is an engine with one object and an event handler, which records each event with its
// memo.
type hearer struct {
	restingEngine
	t      *testing.T
	key    object.Key
	first  *object.Snapshot
	memos  *memo.Memo[*int]
	events []watch.EventType
	given  []*int
	edits  bool // the handler changes its object
}

func hear(t *testing.T) *hearer {
	w := &hearer{t: t, memos: memo.New(nil, func(*int) *int { return new(int) })}
	w.restingEngine = atRest(t, 1, func(r *registry.Registry) {
		r.Add(handler.Watch(selector.New("kopfexamples"), handlertest.Function(w.note), handler.ID("event")))
	})
	w.key = w.keys[0]
	w.first = w.engine.resources.get(kex.String()).Cached(w.key.NamespacedName)
	w.engine.backlog.Open()
	return w
}

func (w *hearer) note(_ context.Context, e *handler.Call) error {
	w.events, w.given = append(w.events, e.Event), append(w.given, w.memos.Of(e))
	if w.edits {
		e.Context.Patch.Set("seen", "status", "phase")
	}
	return nil
}

// successor returns another object of the same name.
func (w *hearer) successor() *object.Snapshot {
	w.t.Helper()
	text, err := w.first.Body().JSON()
	if err != nil {
		w.t.Fatal(err)
	}
	text = bytes.Replace(text, []byte(`"uid":"`), []byte(`"uid":"next-`), 1)
	snapshot, err := object.ParseSnapshot(text)
	if err != nil || snapshot.GetUID() == w.first.GetUID() {
		w.t.Fatal("the successor is missing: ", err)
	}
	return snapshot
}

// show updates the cache of the watch before the engine observes the event.
func (w *hearer) show(snapshot *object.Snapshot) {
	w.t.Helper()
	act := w.cache.Update
	if snapshot == nil {
		snapshot, act = w.first, w.cache.Delete
	}
	if err := act(snapshot); err != nil {
		w.t.Fatal(err)
	}
}

// pass reports the events, and makes a pass.
func (w *hearer) pass(line ...object.WatchEvent) {
	w.t.Helper()
	for _, o := range line {
		w.engine.backlog.Push(w.key, o)
	}
	makeWholePass(w.t, w.restingEngine, w.key)
}

func (w *hearer) expectEvents(expected ...watch.EventType) {
	w.t.Helper()
	if !slices.Equal(w.events, expected) {
		w.t.Fatalf("got %v", w.events)
	}
}

// The cache is ahead of the events: a pass in between finds that the object is gone.
func TestDeletionEventHasTheMemoOfItsObject(t *testing.T) {
	w := hear(t)
	w.pass(object.WatchEvent{Type: watch.Added, Snapshot: w.first})
	w.show(nil)
	w.pass()
	w.pass(object.WatchEvent{Type: watch.Deleted, Snapshot: w.first})
	w.expectEvents(watch.Added, watch.Deleted)
	if w.given[0] != w.given[1] {
		t.Error("the last event has another memo")
	}
	if len(w.engine.objects.states) > 0 {
		t.Error("the state of the object was not removed")
	}
	w.pass() // a late pass
	if len(w.engine.objects.states) > 0 {
		t.Error("the object has a state again")
	}
}

// A pass in between finds the next object of the same name.
func TestLateEventDoesNotDisturbTheNextObject(t *testing.T) {
	w := hear(t)
	w.pass(object.WatchEvent{Type: watch.Added, Snapshot: w.first})
	next := w.successor()
	w.show(next)
	w.pass()
	m := w.engine.objects.of(w.key)
	kept := m.memosOf(next.GetUID(), nil) // like an indexing function or a daemon
	m.handled = true
	w.pass(object.WatchEvent{Type: watch.Deleted, Snapshot: w.first}, object.WatchEvent{Type: watch.Added, Snapshot: next})
	w.expectEvents(watch.Added, watch.Deleted, watch.Added)
	if w.given[0] != w.given[1] || w.given[1] == w.given[2] {
		t.Error("the memos do not belong to their objects")
	}
	if !m.handled || m.memosOf(next.GetUID(), nil) != kept {
		t.Error("the state of the next object was reset")
	}
	if m.memos.Load().former != nil {
		t.Error("the memo of the first object is kept")
	}
}

// Without event handlers, the deletion has no more events to wait for.
func TestMemosOfReplacedObjectAreDropped(t *testing.T) {
	w := hear(t)
	w.engine.resources.get(kex.String()).events = nil
	w.pass()
	m, next := w.engine.objects.of(w.key), w.successor()
	former := m.memosOf(w.first.GetUID(), nil)
	kept := m.memosOf(next.GetUID(), nil) // the indexing functions are ahead of the passes
	if m.memosOf(w.first.GetUID(), nil) != former {
		t.Error("the memo of the first object was dropped too early")
	}
	w.show(next)
	w.pass()
	if m.memosOf(next.GetUID(), nil) != kept || m.memos.Load().former != nil {
		t.Error("the wrong memo was dropped")
	}
	w.show(nil)
	w.pass()
	if len(w.engine.objects.states) > 0 {
		t.Error("the state of the object was not removed")
	}
}

package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

func creating(r *registry.Registry) {
	r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("create")))
}

// unwatch lets the resource be redefined: this version of it has no watch anymore.
func (l *lone) unwatch() {
	former := l.engine.resources.get(kex.String())
	l.engine.resources.put(newResource(watch.NewResource(kex, former.API), former.Declared))
}

// pending makes a pass whose write fails, so that it waits for the next one.
func (l *lone) pending() {
	l.t.Helper()
	l.server.before = func() error { l.server.down = true; return errBroken }
	if _, err := l.pass(); err == nil || !l.state().writes.HasPending() {
		l.t.Fatalf("nothing is pending: %v", err)
	}
	l.server.down = false
}

func (l *lone) has(reason string) bool { return strings.Contains(strings.Join(l.events, "\n"), reason) }

func TestPassOverAnObjectThatIsNotInTheWatch(t *testing.T) {
	tests := map[string]struct {
		prepare   func(l *lone)
		forgotten bool
		fails     bool
		finished  bool // the cycle that was pending
	}{
		"it was deleted, and nothing can be written": {func(l *lone) {
			l.pending()
			l.forget()
			l.server.down = true
		}, true, false, false},
		"it is not watched anymore, and nothing is pending": {func(l *lone) {
			l.rest()
			l.unwatch()
			l.server.down = true
		}, true, false, true},
		"it is not watched anymore, and an outcome is pending": {func(l *lone) { l.pending(); l.unwatch() }, true, false, true},
		"the pending outcome still cannot be written":          {func(l *lone) { l.pending(); l.unwatch(); l.server.down = true }, false, true, false},
		"the object is gone, too":                              {func(l *lone) { l.pending(); l.unwatch(); l.server.remove() }, true, false, false},
		"this version is not served anymore":                   {func(l *lone) { l.pending(); l.unwatch(); l.server.unserved = true }, true, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLone(t, m{}, creating)
				test.prepare(l)
				time.Sleep(time.Hour)
				_, err := l.look()
				if errors.Is(err, errConnection) != test.fails || err != nil && !test.fails || l.engine.objects.has(keyOf("a")) == test.forgotten {
					t.Errorf("got %v; the object is known: %t", err, l.engine.objects.has(keyOf("a")))
				}
				if l.has("CycleFinished") != test.finished || l.server.object != nil && l.isHandled() != test.finished {
					t.Errorf("the end of the cycle is reported: %t", l.has("CycleFinished"))
				}
			})
		})
	}
}

// Otherwise, the daemon would miss why it ends, and the shutdown would not wait for it.
func TestDaemonsOfForgottenObjectsKnowWhy(t *testing.T) {
	for name, watched := range map[string]bool{"the object was deleted": true, "the resource is not watched": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _, reason := withDaemon(t)
				r := e.engine.resources.get(kex.String())
				want := stop.Deleted
				if watched {
					if err := e.cache.Delete(r.Cached(e.keys[0].NamespacedName)); err != nil {
						t.Fatal(err)
					}
				} else {
					r = newResource(watch.NewResource(kex, r.API), r.Declared)
					e.engine.resources.put(r)
					want = stop.Mismatch
				}
				if _, err := e.Reconcile(t.Context(), e.keys[0]); err != nil {
					t.Fatal(err)
				}
				if len(r.leaving.all) > 0 == watched {
					t.Errorf("the end of the daemon is awaited: %t", !watched)
				}
				synctest.Wait()
				if !reason.Has(want) {
					t.Errorf("got %v, want %v", *reason, want)
				}
			})
		})
	}
}

// One object must not keep others from their turns.
func TestPassEndsAfterManyRounds(t *testing.T) {
	calls := 0
	l := newLone(t, m{}, func(r *registry.Registry) {
		counting := func(_ context.Context, c *handler.Call) error {
			calls++
			c.Context.Patch.Set(calls, "spec", "calls")
			return nil
		}
		r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(counting), handler.ID("fn")))
		r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(counting), handler.ID("fn")))
	})
	if wake, err := l.pass(); err != nil || wake != time.Nanosecond || calls != maxRounds {
		t.Errorf("got %s, %v, and %d calls", wake, err, calls)
	}
}

func TestObjectWaitsAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLone(t, m{}, creating)
		l.pending()
		if l.state().failures != 1 {
			t.Errorf("got %d failures", l.state().failures)
		}
		until := l.state().notBefore
		time.Sleep(time.Until(until) / 2)
		l.server.down = true // no pass is made
		result, err := l.Reconcile(t.Context(), keyOf("a"))
		if err != nil || result.RequeueAfter != time.Until(until) || result.RequeueAfter == 0 {
			t.Errorf("got %v, %v, want %v", result, err, time.Until(until))
		}
		time.Sleep(time.Until(until))
		l.server.down = false
		l.rest()
		if l.state().failures != 0 {
			t.Errorf("got %d failures after a success", l.state().failures)
		}
	})
}

// An error can leave an object that is at rest, such as one of its event handlers.
func TestObjectAtRestHasNoFailures(t *testing.T) {
	l := newLone(t, m{}, creating)
	l.rest()
	l.show()
	l.state().failures = 3
	if _, err := l.Reconcile(t.Context(), keyOf("a")); err != nil || l.state().failures != 0 {
		t.Errorf("got %v, %d failures", err, l.state().failures)
	}
}

func TestObjectOfAnUnknownResourceIsLeftAlone(t *testing.T) {
	l := newLone(t, m{}, creating)
	key := keyOf("a")
	key.Resource = "unknown"
	if result, err := l.Reconcile(t.Context(), key); err != nil || result.RequeueAfter != 0 || l.engine.objects.has(key) {
		t.Errorf("got %v, %v", result, err)
	}
}

// Unused slots would block the calls of others.
func TestPassWithoutWorkPassesItsTicketsOn(t *testing.T) {
	tests := map[string]func(l *lone){
		"the object is at rest": func(l *lone) { l.rest() },
		"the object is deleted": func(l *lone) { l.rest(); l.forget() },
		"the object is suspended": func(l *lone) {
			l.server.change(m{"metadata": m{"annotations": m{kopfPrefix + "request-suspend": "forever"}}})
			l.show()
		},
		"nothing has happened that matters": func(l *lone) { l.rest(); l.server.change(m{"status": m{"phase": "x"}}); l.show() },
		"the object is not watched":         func(l *lone) { l.rest(); l.unwatch() },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, m{}, creating)
			prepare(l)
			claim := call.Claim{Key: keyOf("a"), ID: "create", Pool: "pool", Limit: 1}
			other := call.Claim{Key: keyOf("b"), ID: "create", Pool: "pool", Limit: 1}
			slot := l.engine.slots.Take(other)
			if l.engine.slots.LineUp(claim) {
				t.Fatal("there is no limit")
			}
			l.engine.slots.Return(slot) // the slot is reserved for the object now
			if _, err := l.look(); err != nil {
				t.Fatal(err)
			}
			if !l.engine.slots.LineUp(other) {
				t.Error("the slot is still reserved")
			}
		})
	}
}

// What is pending was decided before, and must not be lost or decided twice.
func TestPendingUpdateIsWrittenBeforeAnyDetection(t *testing.T) {
	tests := map[string]struct {
		before func(l *lone) error
		fails  bool
		known  bool // the object exists afterwards
	}{
		"it is written":           {func(*lone) error { return nil }, false, true},
		"the write fails again":   {func(*lone) error { return errBroken }, true, true},
		"the object is gone then": {func(l *lone) error { l.server.remove(); return nil }, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var j journal
				l := newLone(t, m{}, func(r *registry.Registry) {
					r.Add(handler.Create(selector.New("kopfexamples"), j.waiting(0), handler.ID("create")))
				})
				l.pending()
				time.Sleep(time.Hour)
				l.server.before = func() error { return test.before(l) }
				_, err := l.pass()
				if (err != nil) != test.fails || l.state().writes.Gone() == test.known || len(j.ended) != 1 {
					t.Errorf("got %v; the object is gone: %t; %d calls", err, l.state().writes.Gone(), len(j.ended))
				}
				if l.has("CycleFinished") != (test.known && !test.fails) {
					t.Errorf("got the events %q", l.events)
				}
			})
		})
	}
}

// A panic of a filter must not end the process, and is an error of this object.
func TestPanicIsAnErrorOfItsObject(t *testing.T) {
	l := newLone(t, m{}, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("create")))
	}, func(c *Config) {
		c.Context = func(context.Context, CallContext) context.Context { panic("oops") }
	})
	_, err := l.end(l.begin())
	if err == nil || !strings.Contains(err.Error(), "oops") || l.state().failures != 1 {
		t.Errorf("got %v, %d failures", err, l.state().failures)
	}
	if running := l.engine.slots.Usage().Running; running != 0 {
		t.Errorf("%d slots are lost", running)
	}
}

// An edit that a pass has taken is finished with the object.
func TestEditsOfAGoneObjectAreFinished(t *testing.T) {
	l := newLone(t, m{}, creating)
	l.rest()
	done := false
	l.state().writes.Add(call.Edit{ID: "timer", Done: func() { done = true }})
	l.state().writes.SeenGone(true)
	if _, err := l.pass(); err != nil || !done {
		t.Errorf("got %v; the author of the edit still waits: %t", err, !done)
	}
}

// This decides whether resume handlers are called once more after the cycle.
func TestFirstLookKnowsWhoBeganTheCycle(t *testing.T) {
	record := m{"metadata": m{"annotations": m{kopfPrefix + "create": `{"started":"2024-02-14T16:58:25.396364+00:00","purpose":"create","retries":1}`}}}
	tests := map[string]struct {
		content       m
		initial, want bool
	}{
		"a record that is older than the process": {record, true, true},
		"a record of an object created meanwhile": {record, false, false},
		"no record": {m{}, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, test.content, creating)
			l.state().initial.Store(test.initial)
			look := func() bool {
				l.begin()
				l.engine.permits.Release()
				return l.state().startedByPredecessor
			}
			if look() != test.want || !l.state().seen {
				t.Errorf("got %t", !test.want)
			}
			l.state().startedByPredecessor = false // the cycle has ended
			if look() {
				t.Error("another cycle counts as begun by the predecessor")
			}
		})
	}
}

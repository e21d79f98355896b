package reconcile

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
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
				e, _, reason := withDaemon(t, time.Second)
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

// A cluster that is restored from a backup has other contents of the versions that were seen, and lower versions.
func TestAnotherHistoryBeginsAnew(t *testing.T) {
	for name, version := range map[string]int{"a lower version": 1, "the same version": 2} {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, m{}, creating)
			l.rest()
			text := strconv.Itoa(version)
			if text > l.version() {
				t.Fatalf("the object has only the version %s", l.version())
			}
			l.server.version = version
			l.server.object = patch.ApplyMerge(l.server.object, m{"metadata": m{"annotations": nil, "resourceVersion": text}})
			l.show()
			for _, anew := range []bool{false, true} {
				l.state().anew.Store(anew)
				if _, err := l.Reconcile(t.Context(), keyOf("a")); err != nil {
					t.Fatal(err)
				}
				l.detached.Wait()
				if l.isHandled() != anew || l.state().anew.Load() {
					t.Errorf("in another history: %t, but the object is handled: %t", anew, l.isHandled())
				}
			}
		})
	}
}

// Daemons see what the operator has written before the watch shows it, but versions of another history are not later.
func TestDaemonsSeeAnotherHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		l := newLone(t, withFinalizer, until(end))
		l.server.change(m{"spec": m{"size": 1}})
		l.rest()
		synctest.Wait()
		b := l.state().background
		b.seesWrites = true
		l.server.version = 1
		l.server.object = patch.ApplyMerge(l.server.object, m{"metadata": m{"resourceVersion": "1"}})
		l.show()
		l.state().anew.Store(true)
		if _, err := l.Reconcile(t.Context(), keyOf("a")); err != nil {
			t.Fatal(err)
		}
		l.detached.Wait()
		if seen := b.seen.GetResourceVersion(); seen != "1" {
			t.Errorf("the daemon sees the version %s", seen)
		}
		close(end)
		l.engine.supervisor.Stop(context.Background())
	})
}

// What the operator has written is no news for daemons that wait for changes, although the watch shows it later.
func TestDaemonsThatWaitForChangesSeeWhatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		l := newLone(t, withFinalizer, func(r *registry.Registry) {
			creating(r)
			until(end, handler.WakeOn("metadata"))(r)
		})
		if _, err := l.pass(); err != nil || l.writes != 1 {
			t.Fatalf("got %v, %d writes", err, l.writes)
		}
		b := l.state().background
		b.refresh()
		if seen := b.seen.GetResourceVersion(); seen != l.version() {
			t.Errorf("the daemon sees the version %s, not %s", seen, l.version())
		}
		close(end)
		l.engine.supervisor.Stop(context.Background())
	})
}

// An index has what its watch has shown, so handlers wait until that is what they are called for.
func TestHandlersWaitForTheirIndex(t *testing.T) {
	var j journal
	l := newLone(t, m{}, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("kopfexamples"), j.waiting(0), handler.ID("create")))
		r.Add(handler.Update(selector.New("kopfexamples"), j.waiting(0), handler.ID("update")))
	})
	l.resource().FillsIndices = true
	p := l.begin()
	l.server.before = func() error { l.server.change(m{"spec": m{"size": 1}}); return nil }
	timeout := l.engine.Settings.Persistence.ConsistencyTimeout
	if wake, err := l.end(p); err != nil || wake != timeout || len(j.ended) != 1 {
		t.Errorf("got %s, %v, and %d calls", wake, err, len(j.ended))
	}
	l.rest()
	if len(j.ended) != 2 {
		t.Errorf("%d calls after the watch has shown the change", len(j.ended))
	}
}

// The state of the past cannot be stored, but the daemons go on, and people can suspend the object.
func TestBackgroundIsKeptUpWhileNothingCanBeStored(t *testing.T) {
	on := handler.Labels(map[string]handler.Matcher{"off": handler.Absent()})
	off := m{"metadata": m{"labels": m{"off": "yes"}}}
	tests := map[string]struct {
		content, change m
		began, runs     bool
	}{
		"nothing has happened":                            {withFinalizer, m{}, true, true},
		"the object is suspended":                         {withFinalizer, annotated(map[string]string{"request-suspend": "forever"}), true, false},
		"the daemon is not for it anymore":                {withFinalizer, off, true, false},
		"the object is deleted":                           {withFinalizer, marked, true, false},
		"the daemon is for it now":                        {patch.ApplyMerge(withFinalizer, off), m{"metadata": m{"labels": nil}}, false, true},
		"the daemon is for it now, without the finalizer": {off, m{"metadata": m{"labels": nil}}, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := false
				l := newLone(t, test.content, func(r *registry.Registry) {
					creating(r)
					r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, task *handler.Call) error {
						runs = true
						<-task.Stopped()
						runs = false
						return nil
					}), handler.ID("daemon"), on))
				})
				l.pending()
				synctest.Wait()
				if runs != test.began {
					t.Fatalf("the daemon is running: %t", runs)
				}
				time.Sleep(time.Hour)
				l.server.change(test.change)
				l.server.before = func() error { return errBroken }
				if _, err := l.pass(); !errors.Is(err, errBroken) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v", err)
				}
				synctest.Wait()
				if runs != test.runs {
					t.Errorf("the daemon is running: %t", runs)
				}
				l.engine.supervisor.Stop(context.Background())
			})
		})
	}
}

// Both errors are of interest: that of the past, and that of the present.
func TestErrorOfKeepingUpIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, base := newLoneWithBase(t, m{}, creating)
		l.pending()
		time.Sleep(time.Hour)
		l.server.before = func() error {
			l.server.down, base.err = true, errBroken // from here on, so that only what follows the write can report it
			return errConnection
		}
		if _, err := l.pass(); !errors.Is(err, errBroken) || !errors.Is(err, errConnection) {
			t.Errorf("got %v", err)
		}
	})
}

// A watch with selectors does not show what happens to an object that does not match anymore.
func TestObjectOutOfSightIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLone(t, m{}, func(r *registry.Registry) {
			r.Add(handler.Delete(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
				return handler.Temporary(errBroken, time.Hour)
			}), handler.ID("delete")))
		})
		l.resource().Selection = kube.Selection{Labels: "app=web"}
		l.rest()
		l.server.change(m{"metadata": m{"deletionTimestamp": "2024-02-14T16:58:25Z"}})
		l.show()
		l.vanish()
		if wake, err := l.look(); err != nil || wake != sightInterval {
			t.Errorf("got %s, %v", wake, err)
		}
	})
}

// No pass handles an object that is only observed, but one must find out whether it still exists.
func TestObservedObjectThatVanishesIsForgotten(t *testing.T) {
	l := newLone(t, m{}, func(*registry.Registry) {})
	l.resource().Selection = kube.Selection{Labels: "app=web"}
	l.show()
	l.vanish()
	if _, err := l.Reconcile(t.Context(), keyOf("a")); err != nil || l.server.requests != 1 || !l.isForgotten() {
		t.Errorf("got %v, %d requests, forgotten: %t", err, l.server.requests, l.isForgotten())
	}
}

// The deletion of an object that is no longer watched will never be shown to its handlers of events.
func TestUnwatchedObjectWaitsForNoEvents(t *testing.T) {
	l := newLone(t, m{}, func(r *registry.Registry) {
		creating(r)
		r.Add(handler.Watch(selector.New("kopfexamples"), handlertest.Function(ignoreEvent)))
	})
	l.rest()
	l.unwatch()
	if _, err := l.look(); err != nil || l.engine.objects.has(keyOf("a")) {
		t.Errorf("got %v; the object is known: %t", err, l.engine.objects.has(keyOf("a")))
	}
}

func TestTheNextPassIsTheSoonest(t *testing.T) {
	none := nextPass{}
	for _, test := range []struct{ a, b, want nextPass }{
		{none, none, none},
		{in(0), none, in(0)},
		{none, in(0), in(0)},
		{in(time.Second), in(time.Minute), in(time.Second)},
		{in(time.Minute), in(time.Second), in(time.Second)},
		{in(-time.Second), in(time.Second), in(0)},
	} {
		if got := soonest(test.a, test.b); got != test.want {
			t.Errorf("got %+v, want %+v", got, test.want)
		}
	}
	if none.requeueAfter() != 0 || in(0).requeueAfter() <= 0 || in(time.Second).requeueAfter() != time.Second {
		t.Error("queues do not understand it")
	}
}

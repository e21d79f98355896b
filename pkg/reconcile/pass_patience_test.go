package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// slowBase is a storage that takes its time.
type slowBase struct {
	storage.DiffBase

	wait func()
}

func (b slowBase) Fetch(ctx context.Context, body *object.Body) (object.Essence, error) {
	b.wait()
	return b.DiffBase.Fetch(ctx, body)
}

// Code of users may never return. The workers handle other objects meanwhile, and a pause does not wait.
func TestWorkersDoNotWaitForCodeOfUsers(t *testing.T) {
	sel := selector.New("kopfexamples")
	fn := handlertest.Function(ignoreChange)
	tests := map[string]struct {
		declare  func(r *registry.Registry, wait func())
		settings func(c *Config, wait func())
		edit     bool // an edit waits
		patience time.Duration
	}{
		"a filter": {
			declare: func(r *registry.Registry, wait func()) {
				r.Add(handler.Create(sel, fn, handler.ID("create"), handlertest.When(func(*handler.Call) bool { wait(); return true })))
			},
			patience: workerPatience,
		},
		"the delay of a timer": {
			declare: func(r *registry.Registry, wait func()) {
				r.Add(handler.Timer(sel, fn, handler.ID("timer"), handler.Interval(time.Hour), handler.InitialDelayFunc(func(*handler.Call) time.Duration {
					wait()
					return time.Hour
				})))
			},
			patience: workerPatience,
		},
		"an edit": {
			declare: func(r *registry.Registry, _ func()) {
				r.Add(handler.Update(sel, fn, handler.ID("update"))) // not called
			},
			edit:     true,
			patience: workerPatience,
		},
		"a lifecycle": {
			declare: func(r *registry.Registry, _ func()) { creating(r) },
			settings: func(c *Config, wait func()) {
				c.Settings.Execution.Lifecycle = func(due []lifecycles.Due) []lifecycles.Due { wait(); return due }
			},
			patience: workerPatience,
		},
		"a storage": {
			declare: func(r *registry.Registry, _ func()) { creating(r) },
			settings: func(c *Config, wait func()) {
				c.Settings = c.Settings.WithDefaults()
				c.Settings.Persistence.DiffBase = slowBase{c.Settings.Persistence.DiffBase, wait}
			},
			patience: 100 * time.Millisecond, // then, the permit is lent to others
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				waits := false
				wait := func() { waits = true; <-end }
				l := newLone(t, m{}, func(r *registry.Registry) { test.declare(r, wait) }, func(c *Config) {
					if test.settings != nil {
						test.settings(c, wait)
					}
				})
				l.show()
				if test.edit {
					edit := &patch.Patch{}
					edit.Apply(func(*unstructured.Unstructured) error { wait(); return nil })
					l.state().resetFor("u-1")
					l.state().writes.Add(call.Edit{ID: "timer", Patch: edit})
				}
				began := time.Now()
				result, err := l.Reconcile(t.Context(), keyOf("a"))
				if took := time.Since(began); err != nil || result.RequeueAfter != 0 || took != test.patience {
					t.Errorf("after %s, got %v, %v", took, result, err)
				}
				synctest.Wait()
				if !waits || l.engine.isFree(keyOf("a")) {
					t.Error("the pass has ended")
				}
				close(end)
				l.detached.Wait()
				if l.server.object == nil || !l.isAtRest() || l.engine.permits.Waiting() != 0 {
					t.Error("the pass has not gone on")
				}
				l.engine.supervisor.Stop(context.Background())
			})
		})
	}
}

// The pass has left its worker before its filter returns, and fails then.
func TestErrorsAfterAWorkerHasLeftAreThoseOfThePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLone(t, m{}, func(r *registry.Registry) {
			r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("create"), handlertest.When(func(*handler.Call) bool {
				time.Sleep(time.Minute)
				panic("oops")
			})))
		})
		l.show()
		if _, err := l.Reconcile(t.Context(), keyOf("a")); err != nil {
			t.Fatal(err)
		}
		l.detached.Wait()
		if l.state().failures != 1 || l.isAtRest() {
			t.Errorf("got %d failures; at rest: %t", l.state().failures, l.isAtRest())
		}
	})
}

func TestPassThatGetsNoPermitIsNotMade(t *testing.T) {
	l := newLone(t, m{}, func(r *registry.Registry) { // which only records the creation
		r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("update")))
	})
	l.show()
	l.engine.permits = call.NewPermits(1)
	l.engine.permits.Begin("another", nil)
	close(l.stop)
	if result, err := l.Reconcile(t.Context(), keyOf("a")); err != nil || result.RequeueAfter != 0 || l.server.requests > 0 {
		t.Errorf("got %v, %v, and %d requests", result, err, l.server.requests)
	}
	l.detached.Wait()
	if l.isHandled() {
		t.Error("the object is handled")
	}
}

// A pass takes part in the limit of calls while it calls handlers of events.
func TestEventsWaitForASlot(t *testing.T) {
	w := hear(t)
	makePass(t, w.restingEngine, w.key) // without events, in a worker alone
	w.engine.slots = call.NewSlots(1, w.engine.enqueue)
	slot := w.engine.slots.Take(call.Claim{Key: keyOf("b")})
	w.pass(object.WatchEvent{Type: watch.Modified, Snapshot: w.first})
	w.expectEvents()
	w.engine.slots.Return(slot)
	w.pass()
	w.expectEvents(watch.Modified)
}

// A pass gives back what it has taken, also if it goes on after calls.
func TestPassOfManyRoundsKeepsThePermitsBalanced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		l := newLone(t, m{}, func(r *registry.Registry) {
			counting := handlertest.Function(func(_ context.Context, c *handler.Call) error {
				if calls++; calls < 3 {
					c.Context.Patch.Set(calls, "spec", "calls")
				}
				return nil
			})
			r.Add(handler.Create(selector.New("kopfexamples"), counting, handler.ID("fn")))
			r.Add(handler.Update(selector.New("kopfexamples"), counting, handler.ID("fn")))
		})
		l.engine.permits = call.NewPermits(1)
		if _, err := l.pass(); err != nil || calls != 3 {
			t.Errorf("got %v, %d calls", err, calls)
		}
		l.engine.permits.Begin("one", nil)
		go func() { l.engine.permits.Begin("two", nil); l.engine.permits.Release() }()
		synctest.Wait()
		if got := l.engine.permits.Waiting(); got != 1 {
			t.Errorf("%d wait for the only permit", got)
		}
		l.engine.permits.Release()
	})
}

// The queue of a limit is long, and an error must not cost an object its place.
func TestPassesKeepThePlacesOfCallsThatWait(t *testing.T) {
	tests := map[string]struct {
		prepare func(l *lone, base *brokenBase)
		claimed bool // by an earlier call of the change handler
		kept    bool
	}{
		"a call that belongs to no cycle begins to wait": {func(l *lone, _ *brokenBase) {
			l.rest()
			observeChild(l.t, l.engine, keyOf("a"))
		}, false, true},
		"only a call that belongs to no cycle will be made": {func(l *lone, _ *brokenBase) {
			l.rest()
			observeChild(l.t, l.engine, keyOf("a"))
			l.rest() // it is called, and fails
			l.server.change(m{"status": m{"phase": "x"}})
		}, true, false},
		"the pass cannot begin": {func(l *lone, base *brokenBase) {
			l.rest()
			l.server.change(m{"status": m{"phase": "x"}})
			base.err = errBroken
		}, true, true},
		"the pass fails later": {func(l *lone, _ *brokenBase) {
			l.rest()
			l.server.change(m{"spec": m{"size": 1}})
			l.server.before = func() error { return errBroken }
		}, true, true},
		"there is nothing to do": {func(l *lone, _ *brokenBase) {
			l.rest()
			l.server.change(m{"status": m{"phase": "x"}})
		}, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l, base := newLoneWithBase(t, m{}, func(r *registry.Registry) {
				creating(r)
				r.Add(handler.Child(selector.New("kopfexamples"), ofPods, handlertest.Function(func(context.Context, *handler.Call) error {
					return handler.Temporary(errBroken, time.Hour)
				}), handler.ID("tell")))
			})
			l.show()
			setUpChildren(l.engine)
			test.prepare(l, base)
			l.engine.slots = call.NewSlots(1, l.engine.enqueue)
			other := call.Claim{Key: keyOf("b"), ID: "create"}
			slot := l.engine.slots.Take(other)
			if test.claimed && l.engine.slots.LineUp(call.Claim{Key: keyOf("a"), ID: "create"}) {
				t.Fatal("there is no limit")
			}
			_, _ = l.pass() // while no slot is free
			l.engine.slots.Return(slot)
			if kept := !l.engine.slots.LineUp(other); kept != test.kept {
				t.Errorf("the place is kept: %t", kept)
			}
		})
	}
}

package reconcile

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// A pass that ends too early leaves work behind, of which no event may remind the operator. A
// pass that continues without need takes the turn of others.
func TestPassContinuesIfThereIsMoreToDo(t *testing.T) {
	later := handler.Temporary(errBroken, time.Minute)
	change := func(merge m) func(l *lone) { return func(l *lone) { l.server.change(merge) } }
	stop := func(l *lone) { close(l.stop) }
	tests := map[string]struct {
		err    error         // of the first call
		patch  any           // of spec.size, by the handler
		during func(l *lone) // during the call
		before func(l *lone) // the first write
		rounds int           // after the first one
		wake   time.Duration // of the next pass
	}{
		"the handler has succeeded":                         {},
		"the handler is called later":                       {err: later, wake: time.Minute},
		"the handler is called again at once":               {err: handler.Temporary(errBroken, 0), rounds: 1},
		"the handler is called later, and others write":     {err: later, wake: time.Minute, before: change(m{"status": m{"phase": "x"}})},
		"others write, and there may be more to do":         {before: change(m{"status": m{"phase": "x"}}), rounds: 1},
		"others write what must be handled":                 {before: change(m{"spec": m{"size": 7}}), rounds: 1},
		"the edit of the handler must be handled":           {patch: 8, rounds: 1},
		"the object vanishes":                               {err: later, before: func(l *lone) { l.server.remove() }},
		"the operator stops, and the handler is for others": {err: later, during: stop},
		"the operator stops, and others write":              {during: func(l *lone) { stop(l); change(m{"spec": m{"size": 7}})(l) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l *lone
				calls := 0
				fn := func(_ context.Context, c *handler.Call) error {
					if calls++; calls > 1 {
						return nil
					}
					if test.patch != nil {
						c.Context.Patch.Set(test.patch, "spec", "size")
					}
					if test.during != nil {
						test.during(l)
					}
					return test.err
				}
				l = newLone(t, m{}, func(r *registry.Registry) {
					r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(fn), handler.ID("fn")))
					r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(fn), handler.ID("fn")))
				})
				p := l.begin()
				if test.before != nil {
					l.server.before = func() error { test.before(l); return nil }
				}
				wake, err := l.end(p)
				if err != nil || int(p.rounds) != test.rounds || wake != test.wake {
					t.Errorf("got %d rounds, %s, %v; want %d, %s", p.rounds, wake, err, test.rounds, test.wake)
				}
				if ended := test.err == nil || test.rounds > 0; l.has("CycleFinished") != (ended && test.during == nil) {
					t.Errorf("got the events %q", l.events)
				}
				if done := test.wake == 0 && l.server.object != nil && test.during == nil; l.server.object != nil && l.isAtRest() != done {
					t.Errorf("the object is at rest: %t", !done)
				}
			})
		})
	}
}

// The end of the daemon continues the deletion, but what others have changed may matter now.
func TestDeletionThatWaitsForADaemonSeesChanges(t *testing.T) {
	for name, test := range map[string]struct {
		conflict m
		rounds   int
	}{
		"nothing changes":          {nil, 0},
		"others change the object": {m{"status": m{"phase": "x"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				l := newLone(t, withFinalizer, func(r *registry.Registry) {
					r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
						<-end
						return nil
					}), handler.ID("daemon")))
					r.Add(handler.Delete(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("delete")))
				})
				l.rest()
				synctest.Wait()
				l.server.change(marked)
				p := l.begin()
				if test.conflict != nil {
					l.server.before = func() error { l.server.change(test.conflict); return nil }
				}
				wake, err := l.end(p)
				if err != nil || wake != 0 || int(p.rounds) != test.rounds || len(l.finalizers()) != 1 {
					t.Errorf("got %d rounds, %s, %v, the finalizers %v", p.rounds, wake, err, l.finalizers())
				}
				close(end)
				synctest.Wait()
				if _, err := l.pass(); err != nil || l.server.object != nil {
					t.Errorf("the object exists after the end of the daemon: %v", err)
				}
				l.engine.supervisor.Stop(context.Background())
			})
		})
	}
}

// The results of resume handlers in memory do not matter for an object that goes.
func TestDeletionOfAPredecessorsObjectResumesNothing(t *testing.T) {
	var called []string
	note := func(id string) handler.Function {
		return handlertest.Function(func(context.Context, *handler.Call) error { called = append(called, id); return nil })
	}
	l := newLone(t, patch.ApplyMerge(marked, m{"metadata": m{"annotations": m{kopfPrefix + "delete": `{"started":"2024-02-14T16:58:25.396364+00:00","purpose":"delete","retries":1}`}}}), func(r *registry.Registry) {
		r.Add(handler.Delete(selector.New("kopfexamples"), note("delete"), handler.ID("delete")))
		r.Add(handler.Resume(selector.New("kopfexamples"), note("resume"), handler.ID("resume")))
	})
	l.state().initial.Store(true)
	l.server.change(m{"metadata": m{"finalizers": []any{"kopf.zalando.org/KopfFinalizerMarker", "another.dev/finalizer"}}})
	p := l.begin()
	if wake, err := l.end(p); err != nil || wake != 0 || p.rounds != 0 || !slices.Equal(called, []string{"delete"}) {
		t.Errorf("got %d rounds, %s, %v, and calls of %q", p.rounds, wake, err, called)
	}
}

package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// After a start, all suspended objects would be reported at once.
func TestSuspensionIsReportedWhenItBegins(t *testing.T) {
	tests := map[string]struct {
		initial, seen, want bool
	}{
		"an object that this process has handled": {true, true, true},
		"an object from before the start":         {true, false, false},
		"a new object":                            {false, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLone(t, m{}, creating)
				l.state().initial.Store(test.initial)
				if test.seen {
					l.rest()
				}
				end := time.Now().Add(time.Hour)
				l.server.change(m{"metadata": m{"annotations": m{kopfPrefix + "request-suspend": end.UTC().Format(time.RFC3339)}}})
				wake, err := l.pass()
				if err != nil || wake != time.Until(end) {
					t.Errorf("got %s, %v", wake, err)
				}
				if l.has("ObjectSuspended") != test.want {
					t.Errorf("got the events %q", l.events)
				}
				if _, isHeld := l.engine.objects.held.Since(keyOf("a"), suspended, ""); !isHeld {
					t.Error("the object is not counted")
				}
			})
		})
	}
}

// The object vanishes between the call of a handler and the write of its outcome.
func TestDaemonsStopWithAnObjectThatVanishesInAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reason stop.Reason
		calls := 0
		l := newLone(t, withFinalizer, func(r *registry.Registry) {
			r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, task *handler.Call) error {
				<-task.Stopped()
				reason = task.StopReason()
				return nil
			}), handler.ID("daemon")))
			r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
				calls++
				return nil
			}), handler.ID("create")))
		})
		p := l.begin()
		synctest.Wait()
		if p.calling == nil || !l.state().background.areDaemonsRunning() {
			t.Fatal("no handler is called, or no daemon is running")
		}
		l.server.before = func() error { l.server.remove(); return nil }
		if wake, err := l.end(p); err != nil || wake != 0 || calls != 1 {
			t.Errorf("got %s, %v, %d calls", wake, err, calls)
		}
		synctest.Wait()
		if !reason.Has(stop.Deleted) {
			t.Errorf("got %v", reason)
		}
		l.engine.supervisor.Stop(context.Background())
	})
}

// A pass takes long, and persists what its handlers have done so far.
func TestPassEndsWithItsCheckpoint(t *testing.T) {
	tests := map[string]struct {
		before func(l *lone) error
		fails  bool
		calls  int
	}{
		"it is written":          {func(*lone) error { return nil }, false, 2},
		"the write fails":        {func(*lone) error { return errBroken }, true, 1},
		"the object is gone":     {func(l *lone) error { l.server.remove(); return nil }, false, 1},
		"others have changed it": {func(l *lone) error { l.server.change(m{"status": m{"phase": "x"}}); return nil }, false, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, requests := 0, 0
				l := newLone(t, m{}, func(r *registry.Registry) {
					for _, id := range []string{"a", "b"} {
						r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
							calls++
							time.Sleep(time.Minute)
							return nil
						}), handler.ID(id)))
					}
				})
				p := l.begin()
				l.server.before = func() error { requests++; return test.before(l) }
				_, err := l.end(p)
				if (err != nil) != test.fails || requests != 1 {
					t.Errorf("got %v, %d requests", err, requests)
				}
				if l.server.object == nil && !l.state().writes.Gone() {
					t.Error("the object does not count as gone")
				}
				if gone := l.server.object == nil; gone && l.server.requests != 2 || test.fails && l.writes > 0 {
					t.Errorf("after the checkpoint, %d requests are made, and %d writes", l.server.requests, l.writes)
				}
				if calls != test.calls {
					t.Errorf("%d calls, want %d", calls, test.calls)
				}
			})
		})
	}
}

func TestPanicAroundAnEventHandlerEndsThePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hear(t)
		w.engine.Context = func(context.Context, CallContext) context.Context { panic("oops") }
		w.pass(object.WatchEvent{Type: apiwatch.Added, Snapshot: w.first})
		s := w.engine.objects.of(w.key)
		if s.failures != 1 || s.reconciledVersion != "" || s.notBefore.IsZero() {
			t.Errorf("got %+v", s.lifetime)
		}
		if got := w.engine.slots.Usage(); got != (call.Usage{}) || w.engine.permits.Waiting() != 0 {
			t.Errorf("%+v is left", got)
		}
	})
}

// A daemon is told that its object is deleted. One that must outlast it goes on.
func TestDeletionStopsDaemons(t *testing.T) {
	for name, test := range map[string]struct {
		options []handler.BackgroundOption
		stops   bool
	}{
		"a daemon":          {nil, true},
		"one that outlasts": {[]handler.BackgroundOption{handler.Deleted()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reason stop.Reason
				l := newLone(t, m{"metadata": m{"finalizers": []any{"another.dev/finalizer"}}}, func(r *registry.Registry) {
					r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, task *handler.Call) error {
						<-task.Stopped()
						reason = task.StopReason()
						return nil
					}), append(test.options, handler.ID("daemon"))...))
				})
				l.rest()
				synctest.Wait()
				l.server.change(m{"metadata": m{"deletionTimestamp": "2024-02-14T16:58:25Z"}})
				l.rest()
				synctest.Wait()
				if reason.Has(stop.Deleted) != test.stops {
					t.Errorf("got %v", reason)
				}
				l.engine.supervisor.Stop(context.Background())
			})
		})
	}
}

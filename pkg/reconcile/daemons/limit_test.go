package daemons_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
)

// groups returns the groups of more objects.
func (w *world) groups(number int) (all []*daemons.Group) {
	for range number {
		all = append(all, w.supervisor.NewGroup(w))
	}
	return all
}

// syncInOrder starts the handler for all groups, in their order.
func syncInOrder(d *handler.Declaration, pause time.Duration, all []*daemons.Group) {
	for _, g := range all {
		g.Sync([]*handler.Declaration{d}, true)
		time.Sleep(pause)
	}
}

// lasting returns a timer that notes its calls.
func (w *world) lasting(duration time.Duration) func(context.Context, *handler.Call) error {
	var calls atomic.Int64
	return func(context.Context, *handler.Call) error {
		call := calls.Add(1)
		w.note("call %d", call)
		time.Sleep(duration)
		w.note("end %d", call)
		return nil
	}
}

func TestLimitOfTimersIsKept(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		d := w.timer("a", w.lasting(4*time.Second), handler.Interval(20*time.Second), handler.Limit(2))
		syncInOrder(d, time.Second, w.groups(4))
		w.until(23)
		w.expect("0s call 1", "1s call 2", "4s end 1", "4s call 3", "5s end 2", "5s call 4", "8s end 3", "9s end 4")
		w.until(24.5) // the next interval of the first object
		w.expect("0s call 1", "1s call 2", "4s end 1", "4s call 3", "5s end 2", "5s call 4", "8s end 3", "9s end 4", "24s call 5")
	})
}

// A sharp timer that has waited for its turn keeps its grid.
func TestLimitKeepsTheGridOfSharpTimers(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		d := w.timer("a", w.lasting(4*time.Second), handler.Interval(10*time.Second), handler.Sharp(), handler.Limit(1))
		syncInOrder(d, time.Second, w.groups(2))
		w.until(12)
		w.expect("0s call 1", "4s end 1", "4s call 2", "8s end 2", "10s call 3")
	})
}

func TestLimitOfDaemonsIsHeldWhileTheyRun(t *testing.T) {
	ends := map[string]func(g *daemons.Group){
		"the object is deleted":     func(g *daemons.Group) { g.Stop(stop.Deleted) },
		"the object does not match": func(g *daemons.Group) { g.Sync(nil, true) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				d := w.daemon("a", w.untilStopped, handler.Limit(1))
				all := w.groups(3)
				syncInOrder(d, time.Millisecond, all)
				w.until(1)
				if got := w.supervisor.Count(handler.OnDaemon); got != (daemons.Counts{Waiting: 2, Running: 1}) || all[1].HasRunningDaemons() {
					t.Errorf("got %+v", got)
				}
				end(all[1]) // does not wait any longer
				end(all[0])
				w.until(2)
				if got := w.supervisor.Count(handler.OnDaemon); got != (daemons.Counts{Running: 1}) || !all[2].HasRunningDaemons() {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
}

// A daemon that is abandoned may still use what is limited.
func TestAbandonedDaemonKeepsItsPlace(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.daemon("a", w.ignoringStops(time.Minute), handler.Limit(1), handler.CancellationTimeout(time.Second))
		all := w.groups(2)
		syncInOrder(d, time.Millisecond, all)
		w.until(1)
		all[0].Stop(stop.Deleted)
		w.until(59)
		if got := w.supervisor.Count(handler.OnDaemon); got != (daemons.Counts{Waiting: 1, Abandoned: 1}) {
			t.Errorf("got %+v", got)
		}
		w.until(61)
		if got := w.supervisor.Count(handler.OnDaemon); got != (daemons.Counts{Running: 1}) {
			t.Errorf("got %+v", got)
		}
	})
}

// Places are passed on however calls and stops interleave: none is lost.
func TestPlacesAreNotLost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.timer("a", func(context.Context, *handler.Call) error { return nil }, handler.Interval(time.Second), handler.Limit(1))
		for i, g := range w.groups(200) {
			g.Sync([]*handler.Declaration{d}, true)
			if i%3 == 0 {
				go g.Stop(stop.Deleted)
			}
		}
		w.until(10.5)
		last := w.supervisor.NewGroup(w)
		last.Sync([]*handler.Declaration{w.timer("a", w.lasting(0), handler.Limit(1))}, true)
		w.until(12)
		w.expect("10.5s call 1", "10.5s end 1")
	})
}

package daemons_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

// A daemon that matches again starts as soon as the earlier one has returned, and not
// before.
func TestDaemonsRestart(t *testing.T) {
	tests := map[string]struct {
		fn    func(w *world) func(context.Context, *handler.Call) error
		stop  func(w *world)
		start func(w *world)
		want  []string
	}{
		"after it has stopped": {
			func(w *world) func(context.Context, *handler.Call) error { return w.untilStopped },
			func(w *world) { w.match() }, nil,
			[]string{"0s started", "5s stopped: mismatch|signaled", "5s pass", "8s started"},
		},
		"as soon as it has stopped": {
			func(w *world) func(context.Context, *handler.Call) error { return w.ignoringStops(12 * time.Second) },
			func(w *world) { w.match() }, nil,
			[]string{"0s started", "12s returned: mismatch|signaled", "12s pass", "12s started"},
		},
		"after a pause": {
			func(w *world) func(context.Context, *handler.Call) error { return w.untilStopped },
			func(w *world) { w.supervisor.Pause() },
			func(w *world) { w.supervisor.Resume() },
			[]string{"0s started", "5s stopped: paused|signaled", "5s pass", "8s started"},
		},
		"after a pause that was shorter than its termination": {
			func(w *world) func(context.Context, *handler.Call) error { return w.ignoringStops(12 * time.Second) },
			func(w *world) { w.supervisor.Pause() },
			func(w *world) { w.supervisor.Resume() },
			[]string{"0s started", "12s returned: paused|signaled", "12s pass", "12s started"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				d := w.daemon("a", test.fn(w))
				w.match(d)
				w.until(5)
				test.stop(w)
				w.until(8)
				if test.start != nil {
					test.start(w)
				}
				w.match(d)
				w.until(17)
				w.expect(test.want...)
			})
		})
	}
}

// An object can leave what the operator watches, and return. Its daemon does not run twice at
// the same time, and what the earlier one writes is not lost.
func TestDaemonOfAnObjectThatReturns(t *testing.T) {
	for name, reason := range map[string]stop.Reason{"deleted": stop.Deleted, "mismatch": stop.Mismatch} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				d := w.daemon("a", w.ignoringStops(12*time.Second))
				w.match(d)
				w.until(5)
				w.group.Stop(reason)
				if !w.supervisor.IsStopping(w.Identity()) {
					t.Error("the daemon still runs")
				}
				returned := &world{t: t, began: w.began, supervisor: w.supervisor}
				returned.group = w.supervisor.NewGroup(returned)
				returned.match(d)
				returned.until(9)
				if !returned.group.HasRunningDaemons() || !returned.group.NeedsFinalizer(d) {
					t.Error("the object does not wait for its daemon")
				}
				returned.until(13)
				returned.expect("12s pass")
				w.expect("0s started", fmt.Sprintf("12s returned: %s|signaled", name), "12s started")
				returned.group.Stop(reason)
				returned.until(30)
				if w.supervisor.IsStopping(w.Identity()) {
					t.Error("the daemon has returned")
				}
				if again := w.supervisor.NewGroup(w); again == returned.group {
					t.Error("nothing is left of the group")
				}
			})
		})
	}
}

// An abandoned daemon is not waited for, but it must not run twice, either.
func TestAbandonedDaemonIsNotDuplicated(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.daemon("a", w.ignoringStops(20*time.Second), handler.CancellationTimeout(time.Second))
		w.match(d)
		w.until(5)
		w.match()
		w.until(10)
		w.match(d)
		if w.group.HasRunningDaemons() || !w.group.NeedsFinalizer(d) {
			t.Error("no daemon is running, but one is about to start")
		}
		w.until(39)
		w.expect("0s started", "6s a: Abandoned", "6s pass",
			"20s returned: mismatch|signaled|canceled|abandoned", "20s pass", "20s started")
	})
}

// A daemon that waits for its next attempt stops at once.
func TestDaemonStopsBetweenAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.daemon("a", func(_ context.Context, t *handler.Call) error {
			w.note("call %d", t.Attempt.Retry)
			return handler.Temporary(errNetwork, 10*time.Second)
		})
		w.match(d)
		w.until(15)
		if w.group.HasRunningDaemons() || !w.group.NeedsFinalizer(d) {
			t.Error("no daemon is running, but one is about to start")
		}
		w.match()
		w.until(50)
		w.match(d) // from scratch
		w.until(55)
		w.group.Stop(stop.Deleted)
		w.until(100)
		w.expect("0s call 0", "0s a: again in 10s, network", "10s call 1", "10s a: again in 10s, network",
			"50s call 0", "50s a: again in 10s, network")
	})
}

// A daemon that was asked to stop restarts after any error.
func TestErrorsOfStoppingDaemons(t *testing.T) {
	tests := map[string]struct {
		err  error
		want []string
	}{
		"a cancellation is not an error":             {context.Canceled, []string{"5s pass", "8s started"}},
		"a regular error is not retried":             {errNetwork, []string{"5s a: failed, network", "5s pass", "8s started"}},
		"a temporary error is not retried":           {handler.Temporary(errNetwork, 1), []string{"5s a: failed, network", "5s pass", "8s started"}},
		"a permanent error does not end it for good": {handler.Permanent(errors.New("bye")), []string{"5s a: failed, bye", "5s pass", "8s started"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				d := w.daemon("a", func(ctx context.Context, _ *handler.Call) error {
					w.note("started")
					<-ctx.Done()
					return test.err
				}, handler.CancellationTimeout(time.Second))
				w.match(d)
				w.until(5)
				w.match()
				w.until(8)
				w.match(d)
				w.until(9)
				w.expect(append([]string{"0s started"}, test.want...)...)
			})
		})
	}
}

// A panic of a filter or of the engine itself does not take the operator down.
func TestPanicOfTheHost(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.write = func(context.Context) error { panic("oops") }
		w.match(w.timer("a", func(_ context.Context, tick *handler.Call) error {
			tick.SetResult(1)
			return nil
		}, handler.Backoff(30*time.Second), handler.Interval(time.Second)))
		w.until(45)
		w.expect("0s a: again in 30s, panic: oops", "30s a: again in 30s, panic: oops")
	})
}

package daemons_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

func TestDaemonRunsAsLongAsItsObjectExists(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.daemon("a", w.untilStopped)
		if !w.group.NeedsFinalizer(d) || w.group.HasRunningDaemons() {
			t.Error("the finalizer is not required before the daemon starts")
		}
		w.match(d)
		w.until(25)
		w.pass(true) // a change does not affect it
		if !w.group.NeedsFinalizer(d) || !w.group.HasRunningDaemons() {
			t.Error("the daemon does not hold the object")
		}
		w.group.Stop(stop.Deleted)
		w.expect("0s started", "10s checked", "20s checked", "25s stopped: deleted|signaled", "25s pass")
		w.until(100)
		w.pass(true)
		w.expect("0s started", "10s checked", "20s checked", "25s stopped: deleted|signaled", "25s pass")
		if w.group.NeedsFinalizer(d) || w.group.HasRunningDaemons() {
			t.Error("the stopped daemon holds the object")
		}
	})
}

func TestTerminationStages(t *testing.T) {
	type options = []handler.BackgroundOption
	const s = time.Second
	tests := map[string]struct {
		options options
		fn      func(w *world) func(context.Context, *handler.Call) error
		want    []string // from the deletion at 5 seconds until 200 seconds
	}{
		"it stops by itself": {
			options{handler.CancellationBackoff(s), handler.CancellationTimeout(3 * s)},
			func(w *world) func(context.Context, *handler.Call) error { return w.untilStopped },
			[]string{"5s stopped: deleted|signaled", "5s pass"},
		},
		"it stops within the backoff": {
			options{handler.CancellationBackoff(50 * s), handler.CancellationTimeout(3 * s)},
			func(w *world) func(context.Context, *handler.Call) error { return w.ignoringStops(50 * s) },
			[]string{"50s returned: deleted|signaled", "50s pass"},
		},
		"it is canceled after the backoff": {
			options{handler.CancellationBackoff(s), handler.CancellationTimeout(3 * s)},
			func(w *world) func(context.Context, *handler.Call) error { return w.untilCanceled },
			[]string{"6s canceled: deleted|signaled|canceled", "6s pass"},
		},
		"it is canceled at once without a backoff": {
			options{handler.CancellationTimeout(3 * s)},
			func(w *world) func(context.Context, *handler.Call) error { return w.untilCanceled },
			[]string{"5s canceled: deleted|signaled|canceled", "5s pass"},
		},
		"it returns within the timeout": {
			options{handler.CancellationBackoff(s), handler.CancellationTimeout(3 * s)},
			func(w *world) func(context.Context, *handler.Call) error { return w.ignoringStops(8 * s) },
			[]string{"8s returned: deleted|signaled|canceled", "8s pass"},
		},
		"it is abandoned after backoff and timeout": {
			options{handler.CancellationBackoff(s), handler.CancellationTimeout(3 * s)},
			func(w *world) func(context.Context, *handler.Call) error { return w.ignoringStops(150 * s) },
			[]string{"9s a: Abandoned", "9s pass", "150s returned: deleted|signaled|canceled|abandoned", "150s pass"},
		},
		"it is abandoned after the timeout": {
			options{handler.CancellationTimeout(3 * s)},
			func(w *world) func(context.Context, *handler.Call) error { return w.ignoringStops(150 * s) },
			[]string{"8s a: Abandoned", "8s pass", "150s returned: deleted|signaled|canceled|abandoned", "150s pass"},
		},
		"it is abandoned at once": {
			options{handler.CancellationTimeout(0)},
			func(w *world) func(context.Context, *handler.Call) error { return w.ignoringStops(150 * s) },
			[]string{"5s a: Abandoned", "5s pass", "150s returned: deleted|signaled|canceled|abandoned", "150s pass"},
		},
		"it is waited for without end": {
			nil,
			func(w *world) func(context.Context, *handler.Call) error { return w.ignoringStops(150 * s) },
			[]string{"65s a: Stopping", "125s a: Stopping", "150s returned: deleted|signaled", "150s pass"},
		},
		"it is waited for after the backoff": {
			options{handler.CancellationBackoff(20 * s)},
			func(w *world) func(context.Context, *handler.Call) error { return w.ignoringStops(150 * s) },
			[]string{"85s a: Stopping", "145s a: Stopping", "150s returned: deleted|signaled", "150s pass"},
		},
		"its own polling interval": {
			options{handler.CancellationPolling(50 * s)},
			func(w *world) func(context.Context, *handler.Call) error { return w.ignoringStops(150 * s) },
			[]string{"55s a: Stopping", "105s a: Stopping", "150s returned: deleted|signaled", "150s pass"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				w.match(w.daemon("a", test.fn(w), test.options...))
				w.until(5)
				w.group.Stop(stop.Deleted)
				w.group.Stop(stop.Deleted) // in every pass, while the object is being deleted
				w.until(200)
				w.expect(append([]string{"0s started"}, test.want...)...)
			})
		})
	}
}

// A daemon of Deleted runs on while its object is being deleted, does not hold it, and can also start then.
func TestDaemonThatOutlastsTheDeletion(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		held := func(want bool) {
			t.Helper()
			if w.group.HoldsObject() != want {
				t.Errorf("after %s: the object is held: %v", time.Since(w.began), !want)
			}
		}
		lasting := w.daemon("lasting", w.untilStopped, handler.Deleted())
		other := w.daemon("other", w.ignoringStops(12*time.Second))
		late := w.daemon("late", w.untilStopped, handler.Deleted())
		w.match(lasting, other)
		w.until(5)
		held(true)
		if w.group.NeedsFinalizer(lasting) || !w.group.NeedsFinalizer(other) {
			t.Error("the wrong daemon needs the finalizer")
		}
		w.group.BeginDeletion()
		w.match(lasting)
		w.until(15)
		held(false)
		if !w.group.HasRunningDaemons() {
			t.Error("the daemon has ended")
		}
		w.group.BeginDeletion() // in every pass
		w.match()
		w.until(16)
		w.match(late)
		w.until(17)
		w.group.Stop(stop.Deleted) // the object is gone
		w.match(lasting, late)
		w.until(40)
		w.expect(
			"0s started", "0s started", "10s checked", "12s returned: deleted|signaled", "12s pass",
			"15s stopped: mismatch|signaled", "15s pass", "16s started", "17s stopped: deleted|signaled", "17s pass")
	})
}

// An object is held until its daemon has returned or was abandoned.
func TestHasRunningDaemons(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		held := func(want bool) {
			t.Helper()
			if w.group.HasRunningDaemons() != want {
				t.Errorf("after %s: the object is held: %v", time.Since(w.began), !want)
			}
		}
		w.match(w.daemon("a", w.ignoringStops(time.Minute), handler.CancellationTimeout(3*time.Second)))
		held(false)
		w.until(5)
		held(true)
		w.group.Stop(stop.Deleted)
		w.until(7)
		held(true)
		w.until(9)
		held(false)
		w.until(70)
		held(false)
	})
}

func TestErrorsInDaemons(t *testing.T) {
	type options = []handler.BackgroundOption
	const s = time.Second
	always := func(err error) func(context.Context, *handler.Call) error {
		return func(context.Context, *handler.Call) error { return err }
	}
	tests := map[string]struct {
		options options
		fn      func(context.Context, *handler.Call) error
		want    []string
	}{
		"it does not start again after it has returned": {nil, always(nil), []string{"0s call 0", "0s a: ended", "0s pass"}},
		"its result is written": {nil, func(_ context.Context, t *handler.Call) error {
			time.Sleep(10 * s)
			t.SetResult(map[string]any{"finished": true})
			return nil
		}, []string{"0s call 0", "10s a: wrote map[finished:true]", "10s a: ended", "10s pass"}},
		"it restarts after a temporary error": {options{handler.Retries(2)}, func(context.Context, *handler.Call) error {
			time.Sleep(10 * s)
			return handler.Temporary(errors.New("restart"), 10*s)
		}, []string{
			"0s call 0", "10s a: again in 10s, restart", "20s call 1",
			"30s a: failed, handler a has used up its 2 attempts: restart", "30s pass",
		}},
		"it restarts at once without a delay": {nil, func(_ context.Context, t *handler.Call) error {
			time.Sleep(10 * s)
			if t.Attempt.Retry == 1 {
				return nil
			}
			return handler.Temporary(errors.New("restart"), 0)
		}, []string{"0s call 0", "10s a: again in 0s, restart", "10s call 1", "20s a: ended", "20s pass"}},
		"errors of all kinds": {
			options{handler.Errors(handler.ErrorsTemporary), handler.Backoff(s), handler.Retries(10)},
			func(_ context.Context, t *handler.Call) error {
				switch {
				case t.Attempt.Retry < 3:
					return handler.Temporary(errors.New("back"), 2*s)
				case t.Attempt.Retry < 5:
					return errNetwork
				default:
					return handler.Permanent(errors.New("bye"))
				}
			},
			[]string{
				"0s call 0", "0s a: again in 2s, back", "2s call 1", "2s a: again in 2s, back", "4s call 2", "4s a: again in 2s, back",
				"6s call 3", "6s a: again in 1s, network", "7s call 4", "7s a: again in 1s, network", "8s call 5", "8s a: failed, bye", "8s pass",
			},
		},
		"a panic is a regular error": {
			options{handler.Retries(2)},
			func(context.Context, *handler.Call) error { panic("oops") },
			[]string{
				"0s call 0", "0s a: again in 1m0s, panic: oops",
				"60s call 1", "60s a: failed, handler a has used up its 2 attempts: panic: oops", "60s pass",
			},
		},
		"it ends after an ignored error": {
			options{handler.Errors(handler.ErrorsIgnored)},
			always(errNetwork),
			[]string{"0s call 0", "0s a: ignored network", "0s pass"},
		},
		"its timeout expires": {
			options{handler.Timeout(30 * s)},
			func(ctx context.Context, _ *handler.Call) error { <-ctx.Done(); return ctx.Err() },
			[]string{"0s call 0", "30s a: failed, handler a has timed out after 30s: context deadline exceeded", "30s pass"},
		},
		"an initial delay": {
			options{handler.InitialDelay(30 * s)},
			always(nil),
			[]string{"30s call 0", "30s a: ended", "30s pass"},
		},
		"an initial delay that depends on the object": {
			options{handler.InitialDelayFunc(func(a *handler.Call) time.Duration {
				seconds, _ := a.Body().Spec().Int64("delay")
				return time.Duration(seconds) * s
			})}, always(nil), []string{"7s call 0", "7s a: ended", "7s pass"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				d := w.daemon("a", func(ctx context.Context, t *handler.Call) error {
					w.note("call %d", t.Attempt.Retry)
					return test.fn(ctx, t)
				}, test.options...)
				w.match(d)
				w.until(300)
				w.pass(true)
				w.until(500)
				w.expect(test.want...)
				if w.group.NeedsFinalizer(d) || w.group.HasRunningDaemons() {
					t.Error("the finalizer is still required")
				}
			})
		})
	}
}

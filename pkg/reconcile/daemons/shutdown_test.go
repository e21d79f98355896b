package daemons_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
)

func TestShutdown(t *testing.T) {
	const s = time.Second
	type options = []handler.BackgroundOption
	tests := map[string]struct {
		options options
		fn      func(w *world) func(context.Context, *handler.Call) error
		took    time.Duration
		want    []string
	}{
		"a daemon stops by itself": {
			nil, func(w *world) func(context.Context, *handler.Call) error { return w.untilStopped }, 0,
			[]string{"5s stopped: exiting|signaled", "5s pass"},
		},
		"a daemon stops by its stages": {
			options{handler.CancellationBackoff(s), handler.CancellationTimeout(3 * s)},
			func(w *world) func(context.Context, *handler.Call) error { return w.untilCanceled },
			s,
			[]string{"6s canceled: exiting|signaled|canceled", "6s pass"},
		},
		"a daemon is abandoned by its stages": {
			options{handler.CancellationBackoff(s), handler.CancellationTimeout(3 * s)},
			func(w *world) func(context.Context, *handler.Call) error { return w.ignoringStops(100 * s) },
			4 * s,
			[]string{"9s a: Abandoned", "9s pass"},
		},
		"a daemon is canceled at the end of the grace period": {
			nil, func(w *world) func(context.Context, *handler.Call) error { return w.untilCanceled }, 10 * s,
			[]string{"15s canceled: exiting|signaled|canceled", "15s pass"},
		},
		"the grace period cuts the stages short": {
			options{handler.CancellationBackoff(100 * s), handler.CancellationTimeout(100 * s)},
			func(w *world) func(context.Context, *handler.Call) error { return w.untilCanceled },
			10 * s,
			[]string{"15s canceled: exiting|signaled|canceled", "15s pass"},
		},
		"a daemon is abandoned after the grace period": {
			nil, func(w *world) func(context.Context, *handler.Call) error { return w.ignoringStops(100 * s) }, 11 * s,
			[]string{"16s a: Abandoned", "16s pass"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.match(w.daemon("a", test.fn(w), test.options...))
				w.until(5)
				w.exit(10 * s)
				if took := time.Since(w.began) - 5*s; took != test.took {
					t.Errorf("it took %s", took)
				}
				w.expect(append([]string{"0s started"}, test.want...)...)
			})
		})
	}
}

func TestRunningTimerMayFinish(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.match(w.timer("a", func(ctx context.Context, tick *handler.Call) error {
			time.Sleep(8 * time.Second)
			tick.SetResult(1)
			return ctx.Err()
		}), w.timer("b", func(ctx context.Context, _ *handler.Call) error {
			<-ctx.Done()
			w.note("canceled")
			return fmt.Errorf("waiting: %w", ctx.Err())
		}))
		w.until(5)
		w.exit(10 * time.Second)
		w.expect("8s a: wrote 1", "8s pass", "15s canceled", "15s pass")
	})
}

// The last edit of a daemon is written if the API server accepts it in time.
func TestDaemonsWriteDuringShutdown(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.match(w.daemon("a", func(ctx context.Context, task *handler.Call) error {
			<-ctx.Done()
			task.Context.Patch.Set("bye", "status", "phase")
			return nil
		}), w.daemon("b", func(_ context.Context, task *handler.Call) error {
			<-task.Stopped()
			task.SetResult("bye")
			return nil
		}))
		w.write = func(ctx context.Context) error {
			if time.Since(w.began) < 10*time.Second {
				<-ctx.Done()
				w.note("given up")
				return ctx.Err()
			}
			return nil
		}
		w.until(5)
		w.exit(10 * time.Second)
		w.expect("15s a: wrote <nil>", "15s pass", "16s b: EditLost", "16s pass", "16s given up", "16s pass")
	})
}

func TestThousandDaemonsStopWithinTheTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		returned := make(chan struct{}, 1000)
		d := w.daemon("a", func(ctx context.Context, task *handler.Call) error {
			<-task.Stopped()
			time.Sleep(2 * time.Second) // to clean up
			returned <- struct{}{}
			return nil
		})
		for range 1000 {
			w.supervisor.NewGroup(w).Sync([]*handler.Declaration{d}, false)
		}
		w.until(5)
		w.exit(20 * time.Second)
		if took := time.Since(w.began) - 5*time.Second; took != 2*time.Second || len(returned) != 1000 {
			t.Errorf("%d returned after %s", len(returned), took)
		}
	})
}

// After a lost lease, no daemon gets its stages or the grace period, and each learns why.
func TestAbort(t *testing.T) {
	tests := map[string]struct {
		stopBefore bool
		want       string
	}{
		"of running handlers":    {false, "5.001s canceled by leader election lost: exiting|signaled|canceled|leadershipLost"},
		"during the termination": {true, "5.001s canceled by leader election lost: exiting|signaled|canceled|leadershipLost"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.match(w.daemon("a", func(ctx context.Context, task *handler.Call) error {
					<-ctx.Done()
					time.Sleep(time.Millisecond) // the reasons are complete
					w.note("canceled by %v: %s", context.Cause(ctx), task.StopReason())
					return nil
				}, handler.CancellationBackoff(100*time.Second)))
				w.until(5)
				if test.stopBefore {
					ctx, cancel := context.WithCancel(t.Context())
					go w.supervisor.Stop(ctx)
					defer cancel()
					synctest.Wait()
				}
				w.supervisor.Abort(errors.New("leader election lost"))
				time.Sleep(time.Second)
				w.match(w.daemon("b", func(context.Context, *handler.Call) error { w.note("started"); return nil }))
				w.exit(0)
				w.expect(test.want, "5.001s pass")
			})
		})
	}
}

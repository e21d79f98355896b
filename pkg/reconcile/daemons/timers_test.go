package daemons_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

func TestTimersWrite(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.match(w.timer("a", func(_ context.Context, tick *handler.Call) error {
			tick.SetResult(map[string]any{"size": 1})
			return nil
		}, handler.Interval(10*time.Second)), w.timer("b", func(_ context.Context, tick *handler.Call) error {
			tick.Context.Patch.Set(1, "spec", "size")
			return handler.Permanent(errNetwork)
		}, handler.InitialDelay(time.Second)), w.timer("c", func(context.Context, *handler.Call) error {
			return nil
		}, handler.Interval(time.Second)))
		w.until(15)
		w.expect("0s a: wrote map[size:1]", "1s b: failed, network", "1s b: wrote <nil>", "10s a: wrote map[size:1]")
	})
}

// Another process may handle the object: no call begins until the host knows more.
func TestNoCallBeginsWhileTheHostRefuses(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.match(w.timer("a", func(context.Context, *handler.Call) error {
			w.note("call")
			return nil
		}, handler.Interval(10*time.Second)), w.daemon("b", func(context.Context, *handler.Call) error {
			w.note("begin")
			return handler.Temporary(errNetwork, 10*time.Second)
		}, handler.InitialDelay(time.Second)))
		w.until(5)
		w.setRefuses(true)
		w.until(25)
		w.expect("0s call", "1s begin", "1s b: again in 10s, network")
	})
}

// A call is due, but its goroutine waits for a processor until another process may handle the object. The attempt does not
// count.
func TestCallsThatComeTooLateAreMadeLater(t *testing.T) {
	once := handler.Retries(1)
	tests := map[string]struct {
		declare func(w *world) *handler.Declaration
		want    []string
	}{
		"a timer": {func(w *world) *handler.Declaration {
			return w.timer("a", noting(w), handler.Interval(10*time.Second), once)
		}, []string{"1s call 0", "11s call 0"}},
		"a daemon": {func(w *world) *handler.Declaration { return w.daemon("a", noting(w), once) }, []string{"1s call 0", "1s a: ended", "1s pass"}},
		"a timer that decides its interval": {func(w *world) *handler.Declaration {
			return w.timer("a", noting(w), handler.IntervalFunc(func(*handler.Call) time.Duration { return 10 * time.Second }), once)
		}, []string{"1s call 0", "11s call 0"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				w.admitted = 2
				w.match(test.declare(w))
				w.until(15)
				w.expect(test.want...)
			})
		})
	}
}

// noting returns a handler that notes its attempts.
func noting(w *world) func(context.Context, *handler.Call) error {
	return func(_ context.Context, c *handler.Call) error {
		w.note("call %d", c.Attempt.Retry)
		return nil
	}
}

func TestInvalidResultsAreErrors(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.match(w.timer("a", func(_ context.Context, tick *handler.Call) error {
			tick.SetResult(make(chan int))
			return nil
		}, handler.Interval(time.Second)))
		w.until(5)
		w.expect("0s a: failed, the result cannot be stored in the status: " +
			"a value of type chan int cannot be expressed as JSON: json: unsupported type: chan int")
	})
}

// While the API server is unavailable, calls do not pile up, and timers of other
// objects continue; once it is back, the timer continues, too.
func TestTimerSurvivesAnOutage(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		back := time.Now().Add(2 * time.Minute)
		w.write = func(ctx context.Context) error {
			select {
			case <-time.After(time.Until(back)):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		w.match(w.timer("a", func(_ context.Context, tick *handler.Call) error {
			w.note("call")
			tick.SetResult(1)
			return nil
		}, handler.Interval(10*time.Second)))
		other := w.supervisor.NewGroup(w)
		other.Sync([]*handler.Declaration{w.timer("b", func(context.Context, *handler.Call) error {
			w.note("other call")
			return nil
		}, handler.InitialDelay(time.Second), handler.Interval(45*time.Second))}, false)
		w.until(131)
		w.expect("0s call", "1s other call", "46s other call", "91s other call", "120s a: wrote 1", "130s call", "130s a: wrote 1")
		other.Stop(stop.Deleted)
	})
}

func TestRejectedEditsAreReportedAndLost(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.write = func(context.Context) error { return errors.New("spec.size: must be a number") }
		w.match(w.timer("a", func(_ context.Context, tick *handler.Call) error {
			tick.SetResult(1)
			return nil
		}, handler.Interval(10*time.Second)))
		w.until(15)
		w.expect("0s a: WriteRejected", "10s a: WriteRejected")
	})
}

func TestTimerDoesNotOverlapWithItself(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		running := 0
		d := w.timer("a", func(context.Context, *handler.Call) error {
			w.note("call")
			if running++; running > 1 {
				w.note("overlapping")
			}
			time.Sleep(5 * time.Second)
			running--
			return nil
		}, handler.Interval(time.Second), handler.Sharp())
		w.match(d)
		w.until(1)
		w.match() // and matches again before the call has ended: it starts again
		w.until(2)
		w.match(d)
		w.until(7)
		w.match() // and not before the call has ended
		w.until(20)
		w.match(d)
		w.until(21)
		w.expect("0s call", "5s pass", "5s call", "10s pass", "20s call")
	})
}

// A timer with other parameters is the same timer.
func TestAnotherDeclarationReplacesTheRunningOne(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		fn := func(_ context.Context, tick *handler.Call) error {
			w.note("call %v", tick.Param())
			time.Sleep(2 * time.Second)
			return nil
		}
		slow := w.timer("a", fn, handler.Interval(10*time.Second), handler.Param("slow"))
		quick := w.timer("a", fn, handler.Interval(4*time.Second), handler.Param("quick"))
		w.match(slow, quick)
		w.until(1)
		w.match(quick) // while it runs
		w.until(5)
		w.match(slow) // while it waits
		w.until(8)
		w.expect("0s call slow", "2s pass", "2s call quick", "5s call slow")
	})
}

// A timer stops for as long as it does not match.
func TestTimersStop(t *testing.T) {
	tests := map[string]struct {
		stop  func(w *world)
		start func(w *world)
		want  []string
	}{
		"when they do not match": {
			func(w *world) { w.group.Sync(nil, false) },
			func(w *world) { w.pass(false) },
			[]string{"0s call", "10s call", "32s call"},
		},
		"while the operator is paused": {
			func(w *world) { w.supervisor.Pause(); w.pass(false) },
			func(w *world) { w.supervisor.Resume(); w.pass(false) },
			[]string{"0s call", "10s call", "32s call"},
		},
		"for good when the object is deleted": {
			func(w *world) { w.group.Stop(stop.Deleted) },
			func(w *world) { w.pass(true) },
			[]string{"0s call", "10s call"},
		},
		"for good when the operator exits": {
			func(w *world) { w.exit(time.Minute) },
			func(w *world) { w.pass(true) },
			[]string{"0s call", "10s call"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.match(w.timer("a", func(context.Context, *handler.Call) error { w.note("call"); return nil }, handler.Interval(10*time.Second)))
				w.until(12)
				test.stop(w)
				if w.group.HasRunningDaemons() || !time.Now().Equal(w.began.Add(12*time.Second)) {
					t.Error("a timer is waited for")
				}
				w.until(32)
				test.start(w)
				w.until(33)
				w.expect(test.want...)
			})
		})
	}
}

// A running call learns why it should end. Its context is canceled if the object is lost.
func TestRunningCallOfATimerIsAskedToStop(t *testing.T) {
	tests := map[string]struct {
		stop func(w *world)
		want []string
	}{
		"not at all":                      {func(*world) {}, []string{"0s call", "10s returned: "}},
		"when the object is deleted":      {func(w *world) { w.group.Stop(stop.Deleted) }, []string{"0s call", "3s canceled: deleted|signaled|canceled"}},
		"when it does not match":          {func(w *world) { w.match() }, []string{"0s call", "3s canceled: mismatch|signaled|canceled", "3s pass"}},
		"when the operator is paused":     {func(w *world) { w.supervisor.Pause() }, []string{"0s call", "3s stopped: paused|signaled", "10s returned: paused|signaled", "10s pass"}},
		"when it is deleted while paused": {func(w *world) { w.supervisor.Pause(); w.group.Stop(stop.Deleted) }, []string{"0s call", "3s canceled: deleted|paused|signaled|canceled"}},
		"when the operator exits":         {func(w *world) { w.exit(time.Minute) }, []string{"0s call", "3s stopped: exiting|signaled", "10s returned: exiting|signaled", "10s pass"}},
		"at the end of the grace period":  {func(w *world) { w.exit(2 * time.Second) }, []string{"0s call", "3s stopped: exiting|signaled", "5s canceled: exiting|signaled|canceled", "5s pass"}},
		"when another declaration matches": {func(w *world) {
			w.match(w.timer("a", func(context.Context, *handler.Call) error { w.note("other"); return nil }))
		}, []string{"0s call", "3s canceled: mismatch|signaled|canceled", "3s pass", "3s other"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				w.match(w.timer("a", w.callOfTenSeconds))
				w.until(3)
				test.stop(w)
				w.until(20)
				w.expect(test.want...)
			})
		})
	}
}

// callOfTenSeconds notes when it is asked to stop, and ends early if it is canceled.
func (w *world) callOfTenSeconds(ctx context.Context, tick *handler.Call) error {
	w.note("call")
	end := time.After(10 * time.Second)
	stopped := tick.Stopped()
	for {
		select {
		case <-ctx.Done():
			w.note("canceled: %s", tick.StopReason())
			return ctx.Err()
		case <-stopped:
			if !tick.StopReason().Has(stop.Canceled) {
				w.note("stopped: %s", tick.StopReason())
			}
			stopped = nil
		case <-end:
			w.note("returned: %s", tick.StopReason())
			return nil
		}
	}
}

// The call is allowed to finish, and what it wants to write is written.
func TestCanceledCallOfATimerMayFinish(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		d := w.timer("a", func(ctx context.Context, tick *handler.Call) error {
			<-ctx.Done()
			time.Sleep(time.Minute)
			tick.SetResult("done")
			return nil
		})
		w.match(d)
		w.until(3)
		w.match()
		w.until(70)
		w.expect("63s a: wrote done", "63s pass")
	})
}

func TestErrorsOfStoppedTimersAreReportedAsFinal(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.match(w.timer("a", func(ctx context.Context, _ *handler.Call) error {
			<-ctx.Done()
			return errNetwork
		}))
		w.until(3)
		w.match()
		w.until(10)
		w.expect("3s a: failed, network", "3s pass")
	})
}

func TestInitialDelayAppliesToEveryStart(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		d := w.timer("a", func(context.Context, *handler.Call) error { w.note("call"); return nil }, handler.InitialDelay(10*time.Second))
		w.match(d)
		w.until(5)
		w.match()
		w.until(6)
		w.match(d)
		w.until(20)
		w.match()
		w.until(30)
		w.match(d) // a timer without an interval is called once
		w.until(50)
		w.expect("16s call")
	})
}

func TestInitialDelayAppliesAfterAPauseOfTheObject(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		d := w.timer("a", func(context.Context, *handler.Call) error { w.note("call"); return nil },
			handler.InitialDelay(3*time.Second), handler.Interval(10*time.Second))
		w.match(d)
		w.until(5)
		w.match() // its filter does not match anymore
		w.until(20)
		w.match(d)
		w.until(25)
		w.expect("3s call", "23s call")
	})
}

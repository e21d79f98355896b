package daemons_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
)

var errNetwork = errors.New("network")

func TestSchedules(t *testing.T) {
	type options = []handler.BackgroundOption
	const s = time.Second
	quick := func(context.Context, *handler.Call) error { return nil }
	taking := func(d time.Duration) func(context.Context, *handler.Call) error {
		return func(context.Context, *handler.Call) error { time.Sleep(d); return nil }
	}
	tests := map[string]struct {
		options options
		fn      func(context.Context, *handler.Call) error
		changes []float64 // when the essence of the object changes
		until   float64
		want    []string
	}{
		"an interval": {options{handler.Interval(s)}, quick, nil, 3.5, []string{"0s call", "1s call", "2s call", "3s call"}},
		"an interval begins at the end of a call": {
			options{handler.Interval(s)}, taking(300 * time.Millisecond), nil, 3, []string{"0s call", "1.3s call", "2.6s call"},
		},
		"a sharp interval begins at the start of a call": {
			options{handler.Interval(s), handler.Sharp()}, taking(300 * time.Millisecond), nil, 2.5, []string{"0s call", "1s call", "2s call"},
		},
		"a sharp interval that is shorter than the call": {
			options{handler.Interval(s), handler.Sharp()}, taking(2300 * time.Millisecond), nil, 7, []string{"0s call", "3s call", "6s call"},
		},
		"a sharp interval as long as the call": {
			options{handler.Interval(s), handler.Sharp()}, taking(s), nil, 5, []string{"0s call", "2s call", "4s call"},
		},
		"neither interval nor idle time": {nil, quick, []float64{5}, 100, []string{"0s call"}},
		"an idle time begins with the object": {
			options{handler.Idle(10 * s)}, quick, nil, 100, []string{"10s call"},
		},
		"an idle time starts again with every change": {
			options{handler.Idle(10 * s)}, quick, []float64{5, 12}, 100, []string{"22s call"},
		},
		"an idle timer is called once after the last change": {
			options{handler.Idle(10 * s)}, quick, []float64{30, 35, 60}, 100, []string{"10s call", "45s call", "70s call"},
		},
		"a change during the call of an idle timer": {
			options{handler.Idle(10 * s)}, taking(20 * s), []float64{15}, 100, []string{"10s call", "30s call"},
		},
		"a change shortly before the end of the call": {
			options{handler.Idle(10 * s)}, taking(20 * s), []float64{25}, 100, []string{"10s call", "35s call"},
		},
		"idle time and interval": {
			options{handler.Idle(10 * s), handler.Interval(s)},
			quick, nil, 12.5,
			[]string{"10s call", "11s call", "12s call"},
		},
		"a change stops an interval until the object is idle again": {
			options{handler.Idle(10 * s), handler.Interval(s)},
			quick,
			[]float64{11.5, 15},
			26.5,
			[]string{"10s call", "11s call", "25s call", "26s call"},
		},
		"a change does not prolong an interval that is longer than the idle time": {
			options{handler.Idle(10 * s), handler.Interval(60 * s)}, quick, []float64{20}, 140, []string{"10s call", "70s call", "130s call"},
		},
		"an initial delay": {
			options{handler.Interval(s), handler.InitialDelay(5 * s)},
			quick, nil, 7.5,
			[]string{"5s call", "6s call", "7s call"},
		},
		"a change does not prolong the initial delay": {
			options{handler.Interval(s), handler.InitialDelay(5 * s)},
			quick,
			[]float64{3},
			6.5,
			[]string{"5s call", "6s call"},
		},
		"an initial delay that depends on the object": {
			options{handler.Interval(s), handler.InitialDelayFunc(func(a *handler.Call) time.Duration {
				seconds, _ := a.Body().Spec().Int64("delay")
				return time.Duration(seconds) * s
			})}, quick, nil, 8.5, []string{"7s call", "8s call"},
		},
		"a negative initial delay": {
			options{handler.InitialDelayFunc(func(*handler.Call) time.Duration { return -s })}, quick, nil, 8, []string{"0s call"},
		},
		"an initial delay that panics": {
			options{handler.Backoff(3 * s), handler.InitialDelayFunc(func(*handler.Call) time.Duration { panic("oops") })},
			quick, nil, 8,
			[]string{"0s a: again in 3s, panic: oops", "3s call"},
		},
		"an interval that depends on the object": {
			options{handler.IntervalFunc(func(a *handler.Call) time.Duration {
				seconds, _ := a.Body().Spec().Int64("delay")
				return time.Duration(seconds) * s
			})}, quick, nil, 15, []string{"0s call", "7s call", "14s call"},
		},
		"a sharp interval that depends on the object": {
			options{handler.Sharp(), handler.IntervalFunc(func(*handler.Call) time.Duration { return 5 * s })},
			quick, nil, 11,
			[]string{"0s call", "5s call", "10s call"},
		},
		"an interval of zero": {
			options{handler.Backoff(3 * s), handler.IntervalFunc(func(*handler.Call) time.Duration { return 0 })},
			quick, nil, 4,
			[]string{"0s call", "0s a: again in 3s, the function of kopf.IntervalFunc returned 0s: an interval must be positive", "3s call", "3s a: again in 3s, the function of kopf.IntervalFunc returned 0s: an interval must be positive"},
		},
		"an interval that panics, after the last attempt": {
			options{handler.Backoff(3 * s), handler.Retries(1), handler.IntervalFunc(func(*handler.Call) time.Duration { panic("oops") })},
			quick, nil, 4,
			[]string{"0s call", "0s a: failed, handler a has used up its 1 attempts: panic: oops", "3s call", "3s a: failed, handler a has used up its 1 attempts: panic: oops"},
		},
		"initial delay, idle time and interval": {
			options{handler.InitialDelay(60 * s), handler.Interval(10 * s), handler.Idle(600 * s)},
			quick,
			[]float64{625},
			1240,
			[]string{"600s call", "610s call", "620s call", "1225s call", "1235s call"},
		},
		"initial delay after the object has become idle": {
			options{handler.InitialDelay(60 * s), handler.Interval(10 * s), handler.Idle(20 * s)}, quick, nil, 75, []string{"60s call", "70s call"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				w.match(w.timer("a", func(ctx context.Context, tick *handler.Call) error {
					w.note("call")
					return test.fn(ctx, tick)
				}, test.options...))
				for _, at := range test.changes {
					w.until(at)
					w.pass(true)
				}
				w.until(test.until)
				w.expect(test.want...)
			})
		})
	}
}

// The delay of an error overrides the schedule of the timer.
func TestErrorsInTimers(t *testing.T) {
	type options = []handler.BackgroundOption
	const s = time.Second
	failing := func(times int, err error) func(context.Context, *handler.Call) error {
		return func(_ context.Context, tick *handler.Call) error {
			if tick.Attempt.Retry < times {
				return err
			}
			return nil
		}
	}
	tests := map[string]struct {
		options options
		fn      func(context.Context, *handler.Call) error
		until   float64
		want    []string
	}{
		"three failures with a backoff of 5 and an interval of 10 seconds": {
			options{handler.Interval(10 * s), handler.Backoff(5 * s), handler.Errors(handler.ErrorsTemporary)},
			failing(3, errNetwork), 26,
			[]string{
				"0s call 0", "0s a: again in 5s, network", "5s call 1", "5s a: again in 5s, network",
				"10s call 2", "10s a: again in 5s, network", "15s call 3", "25s call 0", "25s a: again in 5s, network",
			},
		},
		"the default backoff": {
			options{handler.Interval(10 * s)},
			failing(1, errNetwork), 71,
			[]string{"0s call 0", "0s a: again in 1m0s, network", "60s call 1", "70s call 0", "70s a: again in 1m0s, network"},
		},
		"temporary errors": {
			options{handler.Interval(10 * s)},
			failing(1, handler.Temporary(errNetwork, 3*s)), 12,
			[]string{"0s call 0", "0s a: again in 3s, network", "3s call 1"},
		},
		"temporary errors without a delay": {
			options{handler.Interval(10 * s)},
			failing(2, handler.Temporary(errNetwork, 0)), 5,
			[]string{"0s call 0", "0s a: again in 0s, network", "0s call 1", "0s a: again in 0s, network", "0s call 2"},
		},
		"a sharp grid begins with the call that succeeds": {
			options{handler.Interval(10 * s), handler.Sharp()},
			failing(1, handler.Temporary(errNetwork, 3*s)), 14,
			[]string{"0s call 0", "0s a: again in 3s, network", "3s call 1", "13s call 0", "13s a: again in 3s, network"},
		},
		"permanent errors stop it for good": {
			options{handler.Interval(10 * s)}, failing(1, handler.Permanent(errNetwork)), 1000, []string{"0s call 0", "0s a: failed, network"},
		},
		"regular errors stop it under ErrorsPermanent": {
			options{handler.Interval(10 * s), handler.Errors(handler.ErrorsPermanent)},
			failing(1, errNetwork), 1000,
			[]string{"0s call 0", "0s a: failed, network"},
		},
		"ignored errors count as success": {
			options{handler.Interval(10 * s), handler.Errors(handler.ErrorsIgnored)},
			failing(1, errNetwork), 15,
			[]string{"0s call 0", "0s a: ignored network", "10s call 0", "10s a: ignored network"},
		},
		"no attempts are left": {
			options{handler.Interval(10 * s), handler.Backoff(s), handler.Retries(2)},
			failing(5, errNetwork), 12,
			[]string{
				"0s call 0", "0s a: again in 1s, network", "1s call 1", "1s a: failed, handler a has used up its 2 attempts: network",
				"11s call 0", "11s a: again in 1s, network", "12s call 1", "12s a: failed, handler a has used up its 2 attempts: network",
			},
		},
		"the timeout would expire": {
			options{handler.Interval(10 * s), handler.Backoff(3 * s), handler.Timeout(5 * s)},
			failing(5, errNetwork), 14,
			[]string{
				"0s call 0", "0s a: again in 3s, network", "3s call 1", "3s a: failed, handler a has timed out after 5s: network",
				"13s call 0", "13s a: again in 3s, network",
			},
		},
		"no attempts are left for a single call": {
			options{handler.Retries(1)},
			failing(1, errNetwork), 1000,
			[]string{"0s call 0", "0s a: failed, handler a has used up its 1 attempts: network"},
		},
		"every success resets the limits": {
			options{handler.Interval(10 * s), handler.Backoff(3 * s), handler.Timeout(5 * s)},
			failing(1, errNetwork), 14,
			[]string{"0s call 0", "0s a: again in 3s, network", "3s call 1", "13s call 0", "13s a: again in 3s, network"},
		},
		"a panic is a regular error": {
			options{handler.Interval(10 * s), handler.Backoff(3 * s)},
			func(_ context.Context, tick *handler.Call) error {
				if tick.Attempt.Retry == 0 {
					panic("oops")
				}
				return nil
			}, 5,
			[]string{"0s call 0", "0s a: again in 3s, panic: oops", "3s call 1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				w.match(w.timer("a", func(ctx context.Context, tick *handler.Call) error {
					w.note("call %d", tick.Attempt.Retry)
					return test.fn(ctx, tick)
				}, test.options...))
				w.until(test.until)
				w.expect(test.want...)
			})
		})
	}
}

func TestIdleTimeAppliesAfterAnErrorToo(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.match(w.timer("a", func(_ context.Context, tick *handler.Call) error {
			w.note("call %d", tick.Attempt.Retry)
			return errNetwork
		}, handler.Idle(10*time.Second), handler.Backoff(3*time.Second), handler.Retries(2)))
		w.until(11)
		w.pass(true)
		w.until(100)
		w.expect("10s call 0", "10s a: again in 3s, network",
			"21s call 1", "21s a: failed, handler a has used up its 2 attempts: network")
	})
}

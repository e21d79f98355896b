package call_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/storage"
)

var errNetwork = errors.New("network")

// failing returns a handler that fails a number of times, and then succeeds.
func failing(times int, err error) func(context.Context, *handler.Call) error {
	return func(context.Context, *handler.Call) error {
		if times--; times >= 0 {
			return err
		}
		return nil
	}
}

// working takes an hour, or returns the error of its context.
func working(ctx context.Context, _ *handler.Call) error {
	select {
	case <-time.After(time.Hour):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestOutcomesOfAttempts(t *testing.T) {
	type options = []handler.ChangeOption
	temporary := func(delay time.Duration) error { return handler.Temporary(errNetwork, delay) }
	tests := map[string]struct {
		fn      func(context.Context, *handler.Call) error
		options options
		want    []string
	}{
		"success": {failing(0, nil), nil, []string{"0s a: succeeded"}},
		"regular errors are retried after the backoff of the settings": {
			failing(2, errNetwork), nil,
			[]string{"0s a: again in 1m0s, network", "60s a: again in 1m0s, network", "120s a: succeeded"},
		},
		"the backoff of the handler wins": {
			failing(1, errNetwork),
			options{handler.Backoff(10 * time.Second)},
			[]string{"0s a: again in 10s, network", "10s a: succeeded"},
		},
		"a backoff of zero retries at once": {
			failing(1, errNetwork),
			options{handler.Backoff(0)},
			[]string{"0s a: again in 0s, network", "0s a: succeeded"},
		},
		"temporary errors are retried after their delay": {
			failing(1, temporary(5*time.Second)), nil, []string{"0s a: again in 5s, network", "5s a: succeeded"},
		},
		"temporary errors are retried under ErrorsPermanent, too": {
			failing(1, temporary(5*time.Second)),
			options{handler.Errors(handler.ErrorsPermanent)},
			[]string{"0s a: again in 5s, network", "5s a: succeeded"},
		},
		"temporary errors are retried under ErrorsIgnored, too": {
			failing(1, temporary(5*time.Second)),
			options{handler.Errors(handler.ErrorsIgnored)},
			[]string{"0s a: again in 5s, network", "5s a: succeeded"},
		},
		"wrapped temporary errors are retried, too": {
			failing(1, fmt.Errorf("pod: %w", temporary(time.Second))), nil,
			[]string{"0s a: again in 1s, pod: network", "1s a: succeeded"},
		},
		"a negative delay counts as none": {
			failing(1, temporary(-time.Second)), nil, []string{"0s a: again in 0s, network", "0s a: succeeded"},
		},
		"permanent errors are final": {
			failing(1, handler.Permanent(errNetwork)), nil, []string{"0s a: failed, network"},
		},
		"permanent errors are final under ErrorsIgnored, too": {
			failing(1, handler.Permanent(errNetwork)), options{handler.Errors(handler.ErrorsIgnored)}, []string{"0s a: failed, network"},
		},
		"regular errors are final under ErrorsPermanent": {
			failing(1, errNetwork), options{handler.Errors(handler.ErrorsPermanent)}, []string{"0s a: failed, network"},
		},
		"regular errors count as success under ErrorsIgnored": {
			failing(1, errNetwork), options{handler.Errors(handler.ErrorsIgnored)}, []string{"0s a: ignored network"},
		},
		"no attempts are left": {
			failing(9, errNetwork),
			options{handler.Retries(2)},
			[]string{"0s a: again in 1m0s, network", "60s a: failed, handler a has used up its 2 attempts: network"},
		},
		"the last attempt may succeed": {
			failing(1, errNetwork), options{handler.Retries(2)}, []string{"0s a: again in 1m0s, network", "60s a: succeeded"},
		},
		"a next attempt after the timeout is not waited for": {
			failing(9, errNetwork),
			options{handler.Timeout(90 * time.Second)},
			[]string{"0s a: again in 1m0s, network", "60s a: failed, handler a has timed out after 1m30s: network"},
		},
		"a next attempt exactly at the timeout is too late": {
			failing(9, errNetwork),
			options{handler.Timeout(60 * time.Second)},
			[]string{"0s a: failed, handler a has timed out after 1m0s: network"},
		},
		"the timeout expires during an attempt": {
			working,
			options{handler.Timeout(30 * time.Second)},
			[]string{"30s a: failed, handler a has timed out after 30s: context deadline exceeded"},
		},
		"a success after the timeout is a success": {
			func(context.Context, *handler.Call) error { time.Sleep(time.Hour); return nil },
			options{handler.Timeout(30 * time.Second)},
			[]string{"3600s a: succeeded"},
		},
		"the timeout counts from the first attempt": {
			func(ctx context.Context, c *handler.Call) error {
				if c.Attempt.Retry == 0 {
					return temporary(20 * time.Second)
				}
				return working(ctx, c)
			},
			options{handler.Timeout(30 * time.Second)},
			[]string{"0s a: again in 20s, network", "30s a: failed, handler a has timed out after 30s: context deadline exceeded"},
		},
		"a panic is a regular error": {
			func(_ context.Context, c *handler.Call) error {
				if c.Attempt.Retry == 0 {
					panic("oops")
				}
				return nil
			}, nil, []string{"0s a: again in 1m0s, panic: oops", "60s a: succeeded"},
		},
		"a panic is final under ErrorsPermanent": {
			func(context.Context, *handler.Call) error { panic(errNetwork) },
			options{handler.Errors(handler.ErrorsPermanent)},
			[]string{"0s a: failed, panic: network"},
		},
		"a result that cannot be stored in the status is an error": {
			func(_ context.Context, c *handler.Call) error { c.SetResult(make(chan int)); return nil }, nil,
			[]string{"0s a: failed, the result cannot be stored in the status: a value of type chan int cannot be expressed as JSON: json: unsupported type: chan int"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				w.cycle(w.handler("a", test.fn, test.options...))
				w.expect(test.want...)
			})
		})
	}
}

// A new version of the operator can allow fewer attempts than there were already.
func TestHandlerThatHasUsedUpItsAttemptsIsNotCalled(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.stored["a"] = &storage.Record{Started: time.Now(), Purpose: cause.Create, Retries: 2}
		w.cycle(w.handler("a", func(context.Context, *handler.Call) error { t.Error("called"); return nil }, handler.Retries(1)))
		w.expect("0s a: failed, handler a has used up its 1 attempts")
	})
}

// The clock of the former process was ahead, or that of this one has stepped back.
func TestAttemptsThatAreYetToComeTakeNoTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.stored["a"] = &storage.Record{Started: time.Now().Add(time.Hour), Purpose: cause.Create, Retries: 1}
		w.cycle(w.handler("a", func(ctx context.Context, c *handler.Call) error {
			w.note("%s before the first attempt, %s", time.Until(c.Attempt.Started), c.Runtime())
			<-ctx.Done()
			return ctx.Err()
		}, handler.Timeout(time.Minute)))
		w.expect("0s 1h0m0s before the first attempt, 0s", "60s a: failed, handler a has timed out after 1m0s: context deadline exceeded")
	})
}

// Chance shortens the pauses by up to a fifth.
func TestPausesGrow(t *testing.T) {
	tests := map[string]struct {
		stored   int // attempts before the operator started
		declared []handler.ChangeOption
		standard backoff.Backoff
		want     []time.Duration // the longest possible pauses
	}{
		"as the handler declares": {
			0,
			[]handler.ChangeOption{handler.ExponentialBackoff(time.Second, 5*time.Second)},
			backoff.Constant(time.Hour),
			[]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second},
		},
		"as the settings say": {
			0, nil, backoff.Exponential(time.Minute, time.Hour), []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute},
		},
		"after a restart from where they were": {
			3, nil, backoff.Exponential(time.Second, time.Hour), []time.Duration{8 * time.Second, 16 * time.Second},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.backoff = test.standard
				if test.stored > 0 {
					w.stored["a"] = &storage.Record{Started: time.Now(), Purpose: cause.Create, Retries: test.stored}
				}
				var calls []time.Time
				fail := failing(len(test.want), errNetwork)
				w.cycle(w.handler("a", func(ctx context.Context, c *handler.Call) error {
					calls = append(calls, time.Now())
					return fail(ctx, c)
				}, test.declared...))
				if len(calls) != len(test.want)+1 {
					t.Fatalf("got %d calls", len(calls))
				}
				for i, want := range test.want {
					if got := calls[i+1].Sub(calls[i]); got > want || got < want*4/5 {
						t.Errorf("pause %d: got %s, want at most %s, and four fifths of it at least", i, got, want)
					}
				}
			})
		})
	}
}

func TestArgumentsOfAttempts(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		began := time.Now().UTC().Truncate(time.Microsecond)
		d := w.handler("a", func(_ context.Context, c *handler.Call) error {
			w.note("attempt %d, %s after %s", c.Attempt.Retry, c.Runtime(), c.Attempt.Started.Sub(began))
			if c.Attempt.Retry < 2 {
				return handler.Temporary(errNetwork, 3*time.Second)
			}
			return nil
		})
		w.cycle(d)
		w.expect(
			"0s attempt 0, 0s after 0s", "0s a: again in 3s, network",
			"3s attempt 1, 3s after 0s", "3s a: again in 3s, network",
			"6s attempt 2, 6s after 0s", "6s a: succeeded",
		)
		record := w.stored["a"]
		if !record.Success || record.Failure || record.Retries != 3 || !record.Started.Equal(began) ||
			!record.Stopped.Equal(began.Add(6*time.Second)) || !record.Delayed.IsZero() || record.Message != "" {
			w.t.Errorf("got %+v", record)
		}
	})
}

// The delay survives a restart.
func TestDelayIsStored(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.handler("a", failing(1, handler.Temporary(errNetwork, 90*time.Minute)))
		_, progress, err := w.pass(t.Context(), d)
		delay, waiting := progress.NextDelay()
		if err != nil || delay != 90*time.Minute || !waiting || w.stored["a"].Message != "network" {
			t.Errorf("got %s, %v, %+v, %v", delay, waiting, w.stored["a"], err)
		}
		time.Sleep(time.Hour)
		runner, progress, err := w.pass(t.Context(), d)
		if delay, _ := progress.NextDelay(); err != nil || delay != 30*time.Minute || runner.Attempts != 0 || len(progress.Dirty()) != 0 {
			t.Errorf("got %s, %d attempts, %v", delay, runner.Attempts, err)
		}
	})
}

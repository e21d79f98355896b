package call_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// The count grows until an attempt is final, within the limits of the handler; then
// it starts again.
func TestAttemptsAreCounted(t *testing.T) {
	type options = []handler.ChangeOption
	tests := map[string]struct {
		options options
		errs    []error // of the attempts
		want    []string
	}{
		"a success resets the count": {
			nil,
			[]error{nil, nil},
			[]string{"0s attempt 0 after 0s: succeeded", "10s attempt 0 after 0s: succeeded"},
		},
		"errors are counted until a success": {
			options{handler.Backoff(5 * time.Second)},
			[]error{errNetwork, handler.Temporary(errNetwork, time.Second), nil, nil},
			[]string{
				"0s attempt 0 after 0s: again in 5s, network", "10s attempt 1 after 10s: again in 1s, network",
				"20s attempt 2 after 20s: succeeded", "30s attempt 0 after 0s: succeeded",
			},
		},
		"the backoff of the caller": {
			nil,
			[]error{errNetwork},
			[]string{"0s attempt 0 after 0s: again in 1m0s, network"},
		},
		"no attempts are left": {
			options{handler.Retries(2)},
			[]error{errNetwork, errNetwork},
			[]string{
				"0s attempt 0 after 0s: again in 1m0s, network",
				"10s attempt 1 after 10s: failed, handler a has used up its 2 attempts: network",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				var attempts call.Attempts
				d := w.handler("a", nothing, test.options...)
				for _, err := range test.errs {
					text := ""
					outcome := attempts.Try(t.Context(), d, backoff.Constant(time.Minute), func(_ context.Context, a handler.Attempt) (any, error) {
						text = fmt.Sprintf("attempt %d after %s: ", a.Retry, a.Now.Sub(a.Started))
						return "result", err
					})
					if outcome.Called != (text != "") || (outcome.Result == "result") != outcome.Succeeded() {
						t.Errorf("got %+v", outcome)
					}
					w.note("%s%s", text, describe(outcome))
					time.Sleep(10 * time.Second)
				}
				w.expect(test.want...)
			})
		})
	}
}

func nothing(context.Context, *handler.Call) error { return nil }

// The context ends with the handler's timeout, and not before.
func TestTimeoutCountsFromTheFirstAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := (&world{t: t}).handler("a", nothing, handler.Timeout(30*time.Second))
		var attempts call.Attempts
		began := time.Now()
		outcome := attempts.Try(t.Context(), d, backoff.Constant(time.Minute), func(ctx context.Context, _ handler.Attempt) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		var timeout *handler.TimeoutError
		if !outcome.Final || !errors.As(outcome.Err, &timeout) || time.Since(began) != 30*time.Second {
			t.Errorf("got %+v after %s", outcome, time.Since(began))
		}
		ctx, attempt := attempts.Begin(t.Context(), d, backoff.Constant(0))
		if ctx.Err() != nil || !attempt.Allowed() {
			t.Error("the timeout does not start again after the final attempt")
		}
		if outcome := attempts.End(ctx, &attempt, 1, nil); !outcome.Succeeded() || ctx.Err() == nil {
			t.Errorf("got %+v; the context ended with %v", outcome, ctx.Err())
		}
	})
}

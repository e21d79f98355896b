package daemons_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
)

func TestMisfitsAreStoppedWithTheirReason(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.daemon("a", func(_ context.Context, task *handler.Call) error {
			<-task.Stopped()
			w.note("stopped: %s", task.StopReason())
			return nil
		})
		w.match(d)
		w.until(1)
		w.passes.Lock()
		w.wanted = nil
		w.group.Sync(nil, true, d)
		w.passes.Unlock()
		w.until(2)
		w.expect("1s stopped: signaled|misfit", "1s pass")
		w.match(d) // it fits again
		w.until(3)
		w.match()
		w.until(4)
		w.expect("1s stopped: signaled|misfit", "1s pass", "3s stopped: mismatch|signaled", "3s pass")
	})
}

// The object can change between the pass and the call.
func TestACallForAMisfitIsNoAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		calls := 0
		w.match(w.timer("a", func(_ context.Context, tick *handler.Call) error {
			calls++
			w.note("retry %d", tick.Attempt.Retry)
			if calls < 3 {
				return &handler.MisfitError{Type: "*v1.Pod", Err: errors.New("no number")}
			}
			return nil
		}, handler.Retries(1)))
		w.until(200)
		w.expect("0s retry 0", "60s retry 0", "120s retry 0")
	})
}

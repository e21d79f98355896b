// Timers: functions that are called for an object again and again, as long as it
// exists, whether something happens to it or not.
//
// A timer holds nothing: an object with timers alone has no finalizer, and goes at
// once when it is deleted.
package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// A memo is kept in memory, one value for every object, as long as that exists. It
// could be made from a value of the operator as a whole, but there is none here.
var counts = kopf.NewMemo(nil, func(*atomic.Int64) *atomic.Int64 { return new(atomic.Int64) })

// The interval is from the end of one call to the start of the next.
func count(_ context.Context, t *kopf.Tick) error {
	calls := counts.Of(t).Add(1)
	t.Logger().Info("The timer is called.", "calls", calls)
	t.SetResult(map[string]any{"calls": calls}) // -> status.count
	return nil
}

// A sharp timer is called once every second, though each call takes a while.
func measure(ctx context.Context, t *kopf.Tick) error {
	t.Logger().Info("The measurement begins.")
	select {
	case <-time.After(300 * time.Millisecond):
	case <-ctx.Done():
	}
	return nil
}

// This one waits until the object has not changed for a while. Results of handlers
// are no changes, nor is anything else in the status.
func settle(_ context.Context, t *kopf.Tick) error {
	field, _ := t.Spec().String("field")
	t.Logger().Info("The object has settled.", "field", field)
	return nil
}

// After an error the backoff replaces the interval, until the timer succeeds.
func probe(_ context.Context, t *kopf.Tick) error {
	if t.Retry() < 2 {
		return errors.New("the service does not answer")
	}
	t.Logger().Info("The service answers.", "retry", t.Retry())
	return nil
}

func main() {
	kex := kopf.Resource("kopfexamples")
	kopf.Timer(kex, count, kopf.Interval(time.Second))
	kopf.Timer(kex, measure, kopf.Interval(time.Second), kopf.Sharp())
	kopf.Timer(kex, settle, kopf.Idle(3*time.Second)) // with an interval, again and again from then on
	kopf.Timer(kex, probe, kopf.InitialDelay(time.Second), kopf.Interval(time.Hour), kopf.Backoff(500*time.Millisecond))
	kopf.Main()
}

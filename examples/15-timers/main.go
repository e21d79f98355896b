// This example has timers: functions that are called repeatedly for an object, for as long
// as it exists, whether the object changes or not.
//
// Timers do not hold objects: an object that only has timers has no finalizer, and is
// deleted at once.
package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/memo"
)

// counts is a memo: a value in memory for every object, for as long as the object exists.
// The value could be made from a value of the operator, which is not needed here.
var counts = memo.New(nil, func(*atomic.Int64) *atomic.Int64 { return new(atomic.Int64) })

// count has an interval from the end of one call to the start of the next.
func count(_ context.Context, t *kopf.Tick) error {
	calls := counts.Of(t).Add(1)
	t.Logger().Info("The timer is called.", "calls", calls)
	t.SetResult(map[string]any{"calls": calls}) // -> status.count
	return nil
}

// measure is a sharp timer: it is called every second, whatever the duration of the calls.
func measure(ctx context.Context, t *kopf.Tick) error {
	t.Logger().Info("The measurement starts.")
	select {
	case <-time.After(300 * time.Millisecond):
	case <-ctx.Done():
	}
	return nil
}

// settle is called when the object has not changed for some time. Changes of the status,
// such as results of handlers, do not count.
func settle(_ context.Context, t *kopf.Tick) error {
	field, _ := t.Spec().String("field")
	t.Logger().Info("The object has settled.", "field", field)
	return nil
}

// probe fails at first. After an error, the backoff replaces the interval until the timer
// succeeds.
func probe(_ context.Context, t *kopf.Tick) error {
	if t.Retry() < 2 {
		return errors.New("the service does not respond")
	}
	t.Logger().Info("The service responds.", "retry", t.Retry())
	return nil
}

func main() {
	kex := kopf.Resource("kopfexamples")
	kopf.Timer(kex, count, kopf.Interval(time.Second))
	kopf.Timer(kex, measure, kopf.Interval(time.Second), kopf.Sharp())
	kopf.Timer(kex, settle, kopf.Idle(3*time.Second)) // with an interval, the calls would be repeated
	kopf.Timer(kex, probe, kopf.InitialDelay(time.Second), kopf.Interval(time.Hour), kopf.Backoff(500*time.Millisecond))
	kopf.Main()
}

// Daemons: functions that accompany an object. Each runs from the time when the
// object is created, or the operator is started, until the object is deleted or
// does not match any longer, or the operator stops.
//
// An object with a daemon has a finalizer: it is not gone before its daemons are.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// The arguments of a daemon are live: they show the object as it is by then. Wait
// ends early when the daemon has to stop, so the pauses may be as long as they like.
func monitor(_ context.Context, t *kopf.Task) error {
	t.Logger().Info("The monitor begins.")
	for !t.Wait(time.Second) {
		field, _ := t.Spec().String("field")
		t.Logger().Info("The object is there.", "field", field)
	}
	t.Logger().Info("The monitor ends.", "reason", t.StopReason().String())
	return nil
}

// Some code knows nothing but its context. The context is cancelled if the daemon
// was declared with a cancellation timeout; with a backoff, not at once, but when
// the daemon has not come to its end by itself in that time.
func follow(ctx context.Context, t *kopf.Task) error {
	<-ctx.Done() // a request to somewhere, which takes for ever
	t.Logger().Info("The request is cut off.", "reason", t.StopReason().String())
	return nil
}

// A daemon can end by itself: there will be no other one before the next operator.
// An error starts it again, after a pause.
func prepare(_ context.Context, t *kopf.Task) error {
	if t.Retry() < 2 {
		return kopf.Temporary(errors.New("the data is not there yet"), 500*time.Millisecond)
	}
	t.SetResult(map[string]any{"attempts": t.Retry() + 1}) // -> status.prepare
	return nil
}

func main() {
	kex := kopf.Resource("kopfexamples")
	kopf.Daemon(kex, monitor, kopf.Labels(kopf.Filters{"monitored": kopf.Equal("yes")}))
	kopf.Daemon(kex, follow, kopf.CancellationBackoff(time.Second), kopf.CancellationTimeout(5*time.Second))
	kopf.Daemon(kex, prepare, kopf.InitialDelay(500*time.Millisecond), kopf.Retries(5))
	kopf.Main()
}

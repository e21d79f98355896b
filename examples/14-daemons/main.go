// This example has daemons: functions that run in the background of an object. A daemon
// starts when the object is created or when the operator starts. It stops when the object
// is deleted or no longer matches, or when the operator stops.
//
// A finalizer holds an object until its daemons have stopped.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// monitor looks at the object every second. The arguments of a daemon are live: they return
// the current state of the object. Wait returns early when the daemon must stop, so the
// interval can be long.
func monitor(_ context.Context, t *kopf.Task) error {
	t.Logger().Info("The monitor starts.")
	for !t.Wait(time.Second) {
		field, _ := t.Spec().String("field")
		t.Logger().Info("The object exists.", "field", field)
	}
	t.Logger().Info("The monitor stops.", "reason", t.StopReason().String())
	return nil
}

// follow only looks at its context. Daemons with a cancellation timeout have their context
// canceled; with a cancellation backoff, only if they have not stopped within that time.
func follow(ctx context.Context, t *kopf.Task) error {
	<-ctx.Done() // stands for a request without an end
	t.Logger().Info("The request is canceled.", "reason", t.StopReason().String())
	return nil
}

// prepare ends by itself. Such a daemon does not start again until the operator restarts.
// After an error, it starts again after a delay.
func prepare(_ context.Context, t *kopf.Task) error {
	if t.Retry() < 2 {
		return kopf.Temporary(errors.New("the data is not there yet"), 500*time.Millisecond)
	}
	t.SetResult(map[string]any{"attempts": t.Retry() + 1}) // -> status.prepare
	return nil
}

func main() {
	kex := kopf.Resource("kopfexamples")
	kopf.Daemon(kex, monitor, kopf.Labels(map[string]kopf.Matcher{"monitored": kopf.Equal("yes")}))
	kopf.Daemon(kex, follow, kopf.CancellationBackoff(time.Second), kopf.CancellationTimeout(5*time.Second))
	kopf.Daemon(kex, prepare, kopf.InitialDelay(500*time.Millisecond), kopf.Retries(5))
	kopf.Main()
}

package main

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// backgroundOperator is an operator of this project with a timer, a daemon, or both, for
// every object. It always has an event handler, which makes passes over the objects and
// writes nothing: without it, an operator with neither would not watch the objects.
type backgroundOperator struct{ timer, daemon bool }

func (a backgroundOperator) run(ctx context.Context, env environment) error {
	registry, examples := kopf.NewRegistry(), kopf.Resource("kopfexamples")
	registry.OnEvent(examples, env.tally.event, kopf.ID("event"))
	if a.timer {
		registry.Timer(examples, env.tally.timer, kopf.ID("timer"), kopf.Interval(env.Interval))
	}
	if a.daemon {
		registry.Daemon(examples, env.tally.daemon, kopf.ID("daemon"))
	}
	return operateKopf(ctx, env, registry, quietly)
}

// tally counts the calls of background handlers. The handlers do nothing else, so that
// the figures are those of the framework.
type tally struct {
	present, daemons, calls atomic.Int64
	waiting                 atomic.Int64 // handlers
	wait                    atomic.Int64 // how long they wait
	expected                atomic.Pointer[expectedCall]
}

// tallied is a snapshot of a tally.
type tallied struct {
	Present int64 // objects known to event handlers
	Daemons int64 // running
	Calls   int64 // of timers, in total
	Waiting int64 // handlers
	// Called is when the handler was called for the object of the last commandCall, in
	// nanoseconds since the epoch.
	Called int64
}

func (t *tally) snapshot() tallied {
	return tallied{t.present.Load(), t.daemons.Load(), t.calls.Load(), t.waiting.Load(), t.expected.Load().time()}
}

func (t *tally) event(_ context.Context, e *kopf.WatchEvent) error {
	switch e.Type() {
	case watch.Added:
		t.present.Add(1)
	case watch.Deleted:
		t.present.Add(-1)
	}
	return nil
}

func (t *tally) timer(context.Context, *kopf.Tick) error {
	t.calls.Add(1)
	return nil
}

// daemon waits until it must stop, like most daemons most of the time.
func (t *tally) daemon(_ context.Context, task *kopf.Task) error {
	t.daemons.Add(1)
	defer t.daemons.Add(-1)
	for !task.Wait(time.Hour) {
		task.Logger().Info("Waiting for another hour.")
	}
	return nil
}

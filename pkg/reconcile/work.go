package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Work handles the objects until the context is done. Then it takes no new work,
// lets running handlers finish within the grace period, cancels them after it,
// and returns when all of them have returned. Daemons and timers are stopped
// first, while there are workers who can write what comes of them.
func (e *Engine) Work(ctx context.Context) error {
	standby := e.listing.Load()
	select {
	case <-e.watching:
	case <-ctx.Done():
		return nil
	}
	// What was listed since is as fresh as can be.
	if standby && !e.caughtUp(ctx) {
		return nil
	}
	defer e.begin(ctx)()
	workers, err := e.workers()
	if err != nil {
		return err
	}
	return e.serve(ctx, workers)
}

// begin makes the context of all handlers, which lives on for the grace period.
func (e *Engine) begin(ctx context.Context) (end func()) {
	working, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	e.working, e.stopping = working, ctx.Done()
	grace := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(e.Settings.Execution.GracePeriod, func() { cancel(errors.New("the operator is stopping")) })
		context.AfterFunc(working, func() { timer.Stop() })
	})
	return func() {
		grace()
		cancel(nil)
	}
}

// workers are those who make the passes.
func (e *Engine) workers() (controller.TypedController[Key], error) {
	unique := true // names need not be unique: several operators run in one process
	workers, err := controller.NewTypedUnmanaged("kopf", controller.TypedOptions[Key]{
		Reconciler:              e,
		MaxConcurrentReconciles: e.Settings.Execution.Workers,
		SkipNameValidation:      &unique,
		Logger:                  e.Logger.V(2),
		LogConstructor:          func(*Key) logr.Logger { return e.Logger.V(2) },
	})
	if err != nil {
		return nil, fmt.Errorf("the workers cannot be set up: %w", err)
	}
	if err := workers.Watch(source.TypedFunc[Key](e.open)); err != nil {
		return nil, fmt.Errorf("the queue cannot be set up: %w", err)
	}
	return workers, nil
}

// serve lets the workers work until the context is done and the daemons and timers
// are stopped.
func (e *Engine) serve(ctx context.Context, workers controller.TypedController[Key]) error {
	serving, halt := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		defer halt()
		select {
		case <-ctx.Done():
		case <-serving.Done(): // the workers have failed
		}
		e.supervisor.Stop(e.working)
	}()
	err := workers.Start(serving)
	halt()
	<-stopped
	return err
}

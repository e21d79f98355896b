package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Work handles the objects until the context is done, but for the pauses. Then it
// takes no new work, lets running handlers finish within the grace period, cancels
// them after it, and returns when all of them have returned. Daemons and timers are
// stopped first, while there are workers who can write what comes of them.
func (e *Engine) Work(ctx context.Context) error {
	e.leading.Store(true)
	defer e.leading.Store(false)
	standby := e.listing.Load()
	select {
	case <-e.watching:
	case <-ctx.Done():
		return nil
	}
	graceful, end := e.grace(ctx)
	defer end()
	defer e.supervisor.Stop(graceful) // of those that a pause has not stopped
	for {
		active, end, others := e.activity.await(ctx)
		if active == nil {
			return nil
		}
		err := e.work(ctx, active, standby || others)
		end()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// work handles the objects until the next pause, or until the operator stops.
func (e *Engine) work(ctx, active context.Context, standby bool) error {
	// What was listed since the start is as fresh as can be.
	if standby && !e.caughtUp(active) {
		return nil
	}
	defer e.begin(active)()
	workers, err := e.workers()
	if err != nil {
		return err
	}
	e.supervisor.Resume()
	return e.serve(ctx, active, workers)
}

// begin makes the context of all handlers, which lives on for the grace period.
func (e *Engine) begin(ctx context.Context) (end func()) {
	e.working, end = e.grace(ctx)
	e.stopping = ctx.Done()
	return end
}

// grace is a context that ends a grace period after another one, or at once when
// the operator is aborted.
func (e *Engine) grace(ctx context.Context) (graceful context.Context, end func()) {
	graceful, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	graced := context.AfterFunc(ctx, func() {
		time.AfterFunc(e.Settings.Execution.GracePeriod, func() { cancel(errors.New("the operator is stopping")) })
	})
	aborted := context.AfterFunc(e.tolerance, func() { cancel(context.Cause(e.tolerance)) })
	return graceful, func() {
		graced()
		aborted()
		cancel(nil)
	}
}

// Abort cancels all handlers, daemons and timers at once, without a grace period:
// somebody else may handle the objects already. The reason is what their contexts
// have for a cause. The operator has to be stopped beside that.
func (e *Engine) Abort(reason error) { e.abort(reason) }

// Aborted tells whether the operator was aborted.
func (e *Engine) Aborted() bool { return e.tolerance.Err() != nil }

// workers are those who make the passes.
func (e *Engine) workers() (controller.TypedController[object.Key], error) {
	unique := true // names need not be unique: several operators run in one process
	workers, err := controller.NewTypedUnmanaged("kopf", controller.TypedOptions[object.Key]{
		Reconciler:              e,
		MaxConcurrentReconciles: e.Settings.Execution.Workers,
		SkipNameValidation:      &unique,
		NewQueue:                e.newQueue,
		Logger:                  e.Logger.V(2),
		LogConstructor:          func(*object.Key) logr.Logger { return e.Logger.V(2) },
	})
	if err != nil {
		return nil, fmt.Errorf("the workers cannot be set up: %w", err)
	}
	if err := workers.Watch(source.TypedFunc[object.Key](e.open)); err != nil {
		return nil, fmt.Errorf("the queue cannot be set up: %w", err)
	}
	return workers, nil
}

// serve lets the workers work until the context is done and the daemons and timers
// are stopped: for good, or for a pause.
func (e *Engine) serve(ctx, active context.Context, workers controller.TypedController[object.Key]) error {
	serving, halt := context.WithCancel(context.WithoutCancel(active))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		defer halt()
		select {
		case <-active.Done():
		case <-serving.Done(): // the workers have failed
		}
		if ctx.Err() != nil || serving.Err() != nil {
			e.supervisor.Stop(e.working)
			return
		}
		e.Logger.Info("The operator is paused.")
		e.supervisor.Pause()
		e.supervisor.Wait(e.working)
	}()
	err := workers.Start(serving)
	halt()
	<-stopped
	e.shut()
	return err
}

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/queue"
)

// Work handles the objects until the context is done, except during pauses. On shutdown, it
// takes no new work, lets running handlers finish within the grace period, cancels them
// afterwards, and returns when all of them have returned. It stops daemons and timers
// first, while the workers can still write their edits.
func (e *Engine) Work(ctx context.Context) error {
	e.leading.Store(true)
	defer e.leading.Store(false)
	defer e.undeclared.Stop()
	standby := e.watcher.HasBegun()
	select {
	case <-e.Ready():
	case <-ctx.Done():
		return nil
	}
	graceful, end := e.graceful(ctx)
	defer end()
	defer e.supervisor.Stop(graceful) // stops the rest, which no pause has stopped
	for {
		active, end, others := e.pause.wait(ctx)
		if active == nil {
			return nil
		}
		err := e.workUntilPause(ctx, active, standby || others)
		end()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// workUntilPause handles the objects until the next pause or until the operator stops.
func (e *Engine) workUntilPause(ctx, active context.Context, standby bool) error {
	// Objects listed after the start are up to date.
	if standby && !e.catchUp(active) {
		return nil
	}
	w := &workers{engine: e, stopping: active.Done()}
	var end func()
	w.calls, end = e.graceful(active)
	defer end()
	c, err := w.controller()
	if err != nil {
		return err
	}
	e.supervisor.Resume()
	return w.run(ctx, active, c)
}

// graceful returns a context that ends a grace period after the given one, or immediately
// when the operator is aborted.
func (e *Engine) graceful(ctx context.Context) (graceful context.Context, end func()) {
	graceful, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stopGrace := context.AfterFunc(ctx, func() {
		time.AfterFunc(e.Settings.Execution.GracePeriod, func() { cancel(errors.New("the operator is stopping")) })
	})
	stopAbort := context.AfterFunc(e.abortContext, func() { cancel(context.Cause(e.abortContext)) })
	return graceful, func() {
		stopGrace()
		stopAbort()
		cancel(nil)
	}
}

// Abort cancels all handlers, daemons, and timers immediately, without a grace period,
// because another replica may already handle the objects. The reason is the cause of their
// contexts. The caller must also stop the operator.
func (e *Engine) Abort(reason error) { e.abort(reason) }

// IsAborted reports whether the operator was aborted.
func (e *Engine) IsAborted() bool { return e.abortContext.Err() != nil }

// workers make passes until the next pause or until the operator stops.
type workers struct {
	engine *Engine
	// calls is the context of all handlers, which continues during the grace period.
	calls    context.Context
	stopping <-chan struct{}
}

// controller returns the controller of the workers, which is not running yet.
func (w *workers) controller() (controller.TypedController[object.Key], error) {
	e, unique := w.engine, true // several operators can run in one process
	c, err := controller.NewTypedUnmanaged("kopf", controller.TypedOptions[object.Key]{
		Reconciler:              w,
		MaxConcurrentReconciles: e.Settings.Execution.Workers,
		SkipNameValidation:      &unique,
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[object.Key]) workqueue.TypedRateLimitingInterface[object.Key] {
			return queue.New(name, limiter, e.Logger.V(2))
		},
		Logger:         e.Logger.V(2),
		LogConstructor: func(*object.Key) logr.Logger { return e.Logger.V(2) },
	})
	if err != nil {
		return nil, fmt.Errorf("the workers cannot be set up: %w", err)
	}
	if err := c.Watch(source.TypedFunc[object.Key](w.open)); err != nil {
		return nil, fmt.Errorf("the queue cannot be set up: %w", err)
	}
	return c, nil
}

// run runs the workers until the context is done and the daemons and timers have stopped,
// for a pause or for good.
func (w *workers) run(ctx, active context.Context, c controller.TypedController[object.Key]) error {
	e := w.engine
	running, halt := context.WithCancel(context.WithoutCancel(active))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		defer halt()
		select {
		case <-active.Done():
		case <-running.Done(): // the workers failed
		}
		if ctx.Err() != nil || running.Err() != nil {
			e.supervisor.Stop(w.calls)
			return
		}
		e.Logger.Info("The operator is paused.")
		e.supervisor.Pause()
		e.supervisor.Wait(w.calls)
	}()
	err := c.Start(running)
	halt()
	<-stopped
	w.shut()
	return err
}

// open starts to fill the queue: with all existing objects, and then with those that
// change.
func (w *workers) open(_ context.Context, waiting workqueue.TypedRateLimitingInterface[object.Key]) error {
	e := w.engine
	e.backlog.Open()
	e.mu.Lock()
	e.queue = waiting.(*queue.Queue) //nolint:errcheck // the controller has no other queue
	e.mu.Unlock()
	for _, r := range e.resources.all() {
		if r.isIndexedOnly() {
			continue
		}
		for _, snapshot := range r.Objects() {
			// Objects that are older than the work of this process were handled by another
			// process or by none.
			s := e.objects.of(r.Key(snapshot))
			s.initial.Store(true)
			s.reconciledVersion = "" // starts its daemons and timers
		}
		for _, key := range e.objects.in(object.StreamKey{Resource: r.Name}) { // including objects that are gone
			e.queue.Add(key)
		}
	}
	return nil
}

// shut ends the work of open after the workers have ended.
func (w *workers) shut() {
	w.engine.backlog.Shut()
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	w.engine.queue = nil
}

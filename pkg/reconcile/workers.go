package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/queue"
)

// Work handles the objects until the context is done, except during pauses. On shutdown, it
// takes no new work, lets running handlers finish within the grace period, cancels them
// afterwards, and returns when all of them have returned. It stops daemons and timers
// first, while the workers can still write their edits.
func (e *Engine) Work(ctx context.Context) error {
	e.leading.Store(true)
	defer close(e.over)
	defer e.leading.Store(false)
	defer context.AfterFunc(ctx, func() { e.exiting.Store(true) })()
	defer e.undeclared.Stop()
	defer e.erasures.Stop()
	standby := e.watcher.HasBegun()
	select {
	case <-e.Ready():
	case <-ctx.Done():
		return nil
	}
	whole, end := e.begin(ctx, e.abortContext)
	defer end()
	e.supervisor.Begin(ctx)
	defer e.supervisor.Stop(whole.calls) // stops the rest, which no pause has stopped
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
	w := &workers{engine: e, active: active}
	var end func()
	w.term, end = e.begin(active, e.abortContext)
	defer end()
	c, err := w.controller()
	if err != nil {
		return err
	}
	e.supervisor.Resume()
	return w.run(ctx, active, c)
}

// term is a time in which the operator handles objects.
type term struct {
	// calls and writes are the contexts of handlers, and of the requests of the framework. They
	// continue during the grace period, which begins when stopping is closed.
	calls, writes context.Context
	stopping      <-chan struct{}
	// tenure is that of the shard of the objects. Nil: they are in none, or this replica does not hold the shard.
	tenure *tenure
}

// isStopping reports whether no handler is called anymore.
func (t term) isStopping() bool {
	select {
	case <-t.stopping:
		return true
	default:
		return false
	}
}

// begin returns a term that lasts until the context is done. Its writes end a grace period later, and its calls as much
// earlier as the writes may need. Both end at once when the other context is done: another replica may handle the objects.
func (e *Engine) begin(ctx, kept context.Context) (t term, end func()) {
	calls, cancelCalls := context.WithCancelCause(context.WithoutCancel(ctx))
	writes, cancelWrites := context.WithCancelCause(context.WithoutCancel(ctx))
	cancelBoth := func(reason error) {
		cancelCalls(reason)
		cancelWrites(reason)
	}
	stopGrace := context.AfterFunc(ctx, func() {
		period := e.Settings.Execution.GracePeriod
		reason := errors.New("the operator is stopping")
		if errors.Is(context.Cause(ctx), errLeaving) {
			// No other replica handles the objects before all outcomes are written.
			time.AfterFunc(period, func() { cancelCalls(errLeaving) })
			return
		}
		time.AfterFunc(period-e.writingTime(), func() { cancelCalls(reason) })
		time.AfterFunc(period, func() { cancelBoth(reason) })
	})
	stopAbort := context.AfterFunc(kept, func() { cancelBoth(context.Cause(kept)) })
	return term{calls: calls, writes: writes, stopping: ctx.Done()}, func() {
		stopGrace()
		stopAbort()
		cancelBoth(nil)
	}
}

const (
	// minWritingTime is the minimum time for the last writes at the end of the grace period.
	minWritingTime = 2 * time.Second
	// writeRate is how many writes an API server is supposed to store in a second.
	writeRate = 200
)

// writingTime returns the part of the grace period that is kept for the writes of the
// handlers that are running: at most half of it.
func (e *Engine) writingTime() time.Duration {
	rate := float32(writeRate)
	if qps := e.Settings.Networking.QPS; qps > 0 {
		rate = min(rate, qps)
	}
	needed := time.Duration(float32(e.slots.Usage().Running) / rate * float32(time.Second))
	return min(max(needed, minWritingTime), e.Settings.Execution.GracePeriod/2)
}

// Abort cancels all handlers, daemons, and timers immediately, without a grace period,
// because another replica may already handle the objects. The reason is the cause of their
// contexts. The caller must also stop the operator.
func (e *Engine) Abort(reason error) {
	e.supervisor.Abort(reason)
	e.abort(reason)
}

// IsAborted reports whether the operator was aborted.
func (e *Engine) IsAborted() bool { return e.abortContext.Err() != nil }

// workers make passes until the next pause or until the operator stops.
type workers struct {
	engine *Engine
	active context.Context // until the next pause, or the end
	term
	// detached are the passes that have returned their worker.
	detached sync.WaitGroup
}

// controller returns the controller of the workers, which is not running yet.
func (w *workers) controller() (controller.TypedController[object.Key], error) {
	e := w.engine
	unique := true // several operators can run in one process
	c, err := controller.NewTypedUnmanaged("kopf", controller.TypedOptions[object.Key]{
		Reconciler:              w,
		MaxConcurrentReconciles: e.Settings.Execution.Workers,
		SkipNameValidation:      &unique,
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[object.Key]) workqueue.TypedRateLimitingInterface[object.Key] {
			if handler.IsObserved(w.calls) {
				name = "" // no metrics, which wake up twice per second: virtual time must jump
			}
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
	go w.warnOverdue(running)
	err := c.Start(running)
	halt()
	<-stopped
	w.waitForCalls(ctx)
	e.erasures.Finish(w.writes, e.isFree)
	w.shut()
	return err
}

// A call that takes longer than overdueCall may never end. It is reported once.
const (
	overdueCall     = 10 * time.Minute
	overdueInterval = time.Minute
)

// warnOverdue warns about calls of handlers that take long, until the context is done. It wakes
// up only while calls run.
func (w *workers) warnOverdue(ctx context.Context) {
	for {
		for w.engine.slots.Usage().Running > 0 && sleep.For(ctx, overdueInterval) {
			for _, call := range w.engine.slots.Overdue(overdueCall) {
				id := w.engine.reporter(call.Key).ReportedID(call.ID)
				w.engine.objectLogger(call.Key).Info("The handler has been running for more than 10 minutes.", "handler", id, "began", call.Began)
			}
		}
		select {
		case <-w.engine.slots.Occupied:
		case <-ctx.Done():
			return
		}
	}
}

// open starts to fill the queue: with all existing objects, and then with those that
// change.
func (w *workers) open(ctx context.Context, waiting workqueue.TypedRateLimitingInterface[object.Key]) error {
	e := w.engine
	e.backlog.Open()
	e.mu.Lock()
	q := waiting.(*queue.Queue) //nolint:errcheck // the controller has no other queue
	e.queue.Store(q)
	for key := range e.abandoned {
		q.Lock(key)
	}
	e.mu.Unlock()
	for _, r := range e.resources.all() {
		q.AddInitial(e.objects.vanishedIn(object.StreamKey{Resource: r.Name})...)
		if r.isObservedOnly() {
			continue
		}
		e.startRollouts(ctx, r)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of the operator is no failure
		}
		for _, snapshot := range r.Objects() {
			if e.isOthers(snapshot) {
				continue
			}
			e.whenFree(r.Key(snapshot), (*objectState).reopen, func(a *abandoned) { a.reopened = true })
		}
		q.AddInitial(e.objects.in(object.StreamKey{Resource: r.Name})...) // including objects that are gone
	}
	for _, key := range e.erasures.Keys() {
		q.Add(key)
	}
	return nil
}

// shut ends the work of open after the workers have ended.
func (w *workers) shut() {
	w.engine.revisions.Clear()
	w.engine.backlog.Shut()
	w.engine.slots.Clear()
	w.engine.spans.endAll()
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	w.engine.queue.Store(nil)
}

package reconcile

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/capacity"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
)

// maxRounds limits how often a pass continues immediately after its own writes. More rounds
// are needed only if handlers keep undoing each other's changes; then the queue lets other
// objects take turns.
const maxRounds = 8

// pass is one run of the engine over one object. It begins in a worker. If handlers must be
// called, it continues in its own goroutine, so that other objects need not wait for them;
// the queue hands out the object again when the entire pass has ended.
//
// A pass has a permit, except while the code of handlers runs.
type pass struct {
	target
	session *write.Session
	workers *workers
	// rounds counts how often the pass has detected what there is to do.
	rounds int
	// isOpen reports whether a handler will be called in this pass or in a later one, as far
	// as the pass knows.
	isOpen func(id string) bool
	// slots are those of the running handlers: more than one with sub-handlers.
	slots []*capacity.Running
	// began is the start of the first handler whose outcome is not persisted.
	began time.Time
	// firstLook is set if no earlier pass of this process has looked at the object.
	firstLook bool
}

func (w *workers) newPass(r *resource, key object.Key) *pass {
	e := w.engine
	p := &pass{target: target{engine: e, resource: r, key: key, object: e.objects.of(key)}, workers: w, isOpen: always}
	p.report = e.reporter(key, &p.object.reported)
	p.firstLook = !p.object.seen
	p.session = e.writer.Open(&p.object.writes, write.Target{
		Key: key, API: r.API, StatusSubresource: r.HasStatusSubresource(), Redefined: r.SetStatusSubresource,
	}, p.report)
	return p
}

// Reconcile makes one pass over the object, or begins it, and returns when the next one is
// due. Errors of the framework and the API delay only this object.
func (w *workers) Reconcile(_ context.Context, key object.Key) (ctrl.Result, error) {
	r := w.engine.resources.get(key.Resource)
	if r == nil || !w.engine.watcher.WaitForIndices(w.stopping) {
		return ctrl.Result{}, nil
	}
	p := w.newPass(r, key)
	if delay := max(time.Until(p.object.notBefore), p.contentionDelay()); delay > 0 {
		return w.settle(p, delay), nil
	}
	if events := p.eventHandlers(); events.arePending() {
		if slot := events.takeSlot(); slot != nil {
			w.detach(p, func() (time.Duration, error) { return w.runAfterEvents(p, events, slot) })
		}
		return ctrl.Result{}, nil
	}
	w.engine.permits.Begin(key.Resource)
	due, wake, err := p.begin(w.writes)
	if due != nil {
		w.detach(p, func() (time.Duration, error) { return p.finish(w.writes, due) })
		return ctrl.Result{}, nil
	}
	w.engine.permits.Release()
	return w.end(p, wake, err), nil
}

// runAfterEvents is the entire pass over an object with watch events for event handlers.
func (w *workers) runAfterEvents(p *pass, events eventHandlers, slot *capacity.Running) (wake time.Duration, err error) {
	err = events.handleWith(w.calls, slot)
	p.engine.permits.Continue(p.key.Resource)
	if err != nil {
		return 0, err
	}
	due, wake, err := p.begin(w.writes)
	if due == nil {
		return wake, err
	}
	return p.finish(w.writes, due)
}

// detach continues a pass in its own goroutine, which ends with a permit. The object stays
// locked. After the shutdown of the queue, the goroutine still writes what its handlers have
// done; the request for another pass has no effect then.
func (w *workers) detach(p *pass, rest func() (wake time.Duration, err error)) {
	q := w.engine.currentQueue()
	q.Detach(p.key)
	w.detached.Go(func() {
		wake, err := rest()
		w.engine.permits.Release()
		q.Release(p.key, w.end(p, wake, err).RequeueAfter)
	})
}

// begin is the part of a pass that calls no handlers: observe, and detect. It returns the
// cycle whose handlers are due; nil ends the pass.
func (p *pass) begin(ctx context.Context) (due *cycle, wake time.Duration, err error) {
	defer recovered(&err)
	defer p.endIfGone()
	fresh, wake, err := p.observe(ctx)
	if err != nil || !fresh {
		return nil, wake, err
	}
	flushed, err := p.session.Flush(ctx)
	if err != nil {
		return nil, 0, err
	}
	if p.finishCycle(flushed); flushed.Gone {
		return nil, 0, nil
	}
	if suspension := p.suspension(p.session.Body()); suspension.Active {
		p.isOpen = never
		p.object.background.suspend()
		wake, err = p.leaveSuspended(ctx, suspension)
		return nil, wake, err
	}
	return p.advance(ctx)
}

// finish is the rest of a pass: execute, and record; and again, as long as the writes change
// what there is to do.
func (p *pass) finish(ctx context.Context, due *cycle) (wake time.Duration, err error) {
	defer recovered(&err)
	defer p.endIfGone()
	for due != nil {
		if err := p.execute(ctx, due); err != nil || p.object.writes.Gone() {
			return 0, err
		}
		p.reportMisfits(due)
		again, wake, err := p.record(ctx, due)
		if err != nil || !again {
			return wake, err
		}
		p.rounds++
		if due, wake, err = p.advance(ctx); due == nil {
			return wake, err
		}
	}
	return 0, nil
}

// observe gets the latest known version of the object. It returns false if there is nothing
// to do, or if the pass must wait.
func (p *pass) observe(ctx context.Context) (fresh bool, wait time.Duration, err error) {
	cached := p.resource.Cached(p.key.NamespacedName)
	if cached == nil {
		if !p.eventHandlers().isDeletePending() {
			p.cleanUp()
		}
		p.isOpen = never
		return false, 0, nil
	}
	p.resetFor(cached.GetUID())
	p.object.background.refresh()
	p.object.writes.Add(p.object.background.takeEdits()...)
	if p.object.writes.IsReconciled(cached.GetResourceVersion(), p.object.reconciledVersion) && !p.object.background.isRequeueRequested() {
		p.isOpen = never
		return false, 0, nil // reconciled and unchanged
	}
	freshness, err := p.session.Refresh(ctx, cached)
	return freshness.Fresh, freshness.WaitFor, err
}

// advance advances the object until handlers are due, or until nothing is left to do.
func (p *pass) advance(ctx context.Context) (due *cycle, wake time.Duration, err error) {
	for ; p.rounds < maxRounds; p.rounds++ {
		due, again, wake, err := p.round(ctx)
		if err != nil || due != nil || !again {
			return due, wake, err
		}
	}
	return nil, time.Nanosecond, nil // the next pass is due immediately
}

// round detects what there is to do. It returns the cycle whose handlers are due; otherwise,
// it advances the object by one update, and returns true if that has changed what there is to
// do.
func (p *pass) round(ctx context.Context) (due *cycle, again bool, wake time.Duration, err error) {
	p.session.StartDetection()
	p.stopBackgroundOfDeleted()
	c, err := detector{p.target}.detect(ctx, p.session.Body())
	if err != nil {
		return nil, false, 0, err
	}
	p.object.seen = true
	p.reportDropped(c, p.session.Body())
	p.reportRequests(c, p.session.Body())
	p.isOpen = c.isOpen
	if c.mustAddFinalizer() {
		again, err := p.addFinalizer(ctx)
		return nil, again, 0, err
	}
	if err := p.syncBackground(c); err != nil {
		return nil, false, 0, err
	}
	if c.nothingToDo() {
		p.reportMisfits(c)
		again, err := p.leaveAlone(ctx, c)
		return nil, again, 0, err
	}
	if p.prepare(c); c.runner.HasDue(c.handlers) {
		return c, false, 0, nil
	}
	p.reportMisfits(c)
	again, wake, err = p.record(ctx, c)
	return nil, again, wake, err
}

// end ends a pass, and returns when the next one is due.
func (w *workers) end(p *pass, wake time.Duration, err error) ctrl.Result {
	if err != nil {
		p.isOpen = always
		return w.settle(p, p.recordFailure(err))
	}
	p.object.failures = 0
	return w.settle(p, wake)
}

// settle returns the slots that the pass still has after a panic, passes on those that it
// has not used, and returns the request for the next pass. That is urgent, even if this one
// was not.
func (w *workers) settle(p *pass, wake time.Duration) ctrl.Result {
	for _, slot := range p.slots {
		w.engine.slots.Return(slot)
	}
	w.engine.slots.Settle(p.key, p.isOpen)
	return ctrl.Result{RequeueAfter: wake, Priority: new(0)}
}

func always(string) bool { return true }

func never(string) bool { return false }

// endIfGone stops all work on an object that no longer exists.
func (p *pass) endIfGone() {
	if p.object.writes.Gone() {
		p.object.markGone()
	}
}

// cleanUp removes the state of an object that is gone or no longer watched.
func (p *pass) cleanUp() {
	reason := handler.StopDeleted
	if !p.resource.IsWatched(p.key.Namespace) {
		reason = handler.StopMismatch
	}
	if b := p.engine.objects.remove(p.key, reason); b != nil && reason == handler.StopMismatch {
		p.resource.leaving.add(b.group)
	}
}

// recovered converts a panic in the engine to an error, so that one object cannot stop the
// others. (Panics in handlers are recovered in their calls.)
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("a panic in a filter, in a storage, or in the framework itself: %v\n%s", value, debug.Stack())
	}
}

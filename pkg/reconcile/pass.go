package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
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
	// due is the cycle whose handlers are being called; nil if none are.
	due *cycle
	// next is when the next pass is due, unless there is an error.
	next nextPass
	err  error
	// rounds counts the plans of the pass.
	rounds int
	// isOpen reports whether a handler will be called in this pass or in a later one, as far
	// as the pass knows.
	isOpen func(id string) bool
	// began is the start of the first handler whose outcome is not persisted.
	began time.Time
	// firstLook is set if no earlier pass of this process has looked at the object.
	firstLook bool
}

func (w *workers) newPass(r *resource, key object.Key) *pass {
	e := w.engine
	p := &pass{target: target{engine: e, resource: r, key: key, object: e.objects.of(key)}, workers: w, isOpen: always}
	p.report = e.reporterOf(key, p.lastBody, &p.object.reported)
	p.firstLook = !p.object.seen
	p.session = e.writer.Open(&p.object.writes, write.Target{
		Key: key, API: r.API, StatusSubresource: r.HasStatusSubresource(), Redefined: r.SetStatusSubresource, Rewound: r.Interrupt,
	}, p.report)
	return p
}

// lastBody returns the object as the pass has seen it last, or nil.
func (p *pass) lastBody() *object.Body {
	if p.session == nil {
		return nil
	}
	return p.session.Body()
}

// Reconcile makes one pass over the object, or begins it, and returns when the next one is
// due. Errors of the framework and the API delay only this object.
func (w *workers) Reconcile(_ context.Context, key object.Key) (ctrl.Result, error) {
	r := w.engine.resources.get(key.Resource)
	if r == nil || !w.engine.watcher.WaitForIndices(w.stopping) {
		return ctrl.Result{}, nil
	}
	t := target{engine: w.engine, resource: r, key: key, object: w.engine.objects.of(key)}
	if t.object.anew.CompareAndSwap(true, false) {
		t.object.beginAnew()
	}
	cached := r.Cached(key.NamespacedName)
	if delay := max(time.Until(t.object.notBefore), t.contentionDelay(cached)); delay > 0 {
		return w.endTurn(key, always, in(delay)), nil
	}
	if t.areEventsPending() {
		w.detachWithEvents(w.newPass(r, key), cached)
		return ctrl.Result{}, nil
	}
	if t.isAtRest(cached) { // nearly always
		t.object.failures = 0
		return w.endTurn(key, never, nextPass{}), nil
	}
	return w.runInWorker(w.newPass(r, key)), nil
}

// workerPatience is how long a worker waits for the part of a pass that calls no handlers: filters and
// storages of users may never return, and a pause waits for the workers.
const workerPatience = time.Second

// runInWorker makes the part of a pass that calls no handlers, and detaches the rest. If code of users can run in it, it
// has its own goroutine, since that code may not return; others need none, which takes less time.
func (w *workers) runInWorker(p *pass) ctrl.Result {
	if !w.engine.permits.Begin(p.key.Resource, w.stopping) {
		return ctrl.Result{}
	}
	if !p.runsCode() {
		p.next, p.err = p.begin(w.writes)
		return w.detachOrEnd(p)
	}
	began := handler.Start(func() error {
		p.next, p.err = p.begin(w.writes)
		return nil
	})
	patience := time.NewTimer(workerPatience)
	defer patience.Stop()
	select {
	case err := <-began:
		p.fail(err)
	case <-patience.C:
		w.detach(p, func() *call.Call {
			p.fail(<-began)
			return p.resume(nil)
		})
		return ctrl.Result{}
	}
	return w.detachOrEnd(p)
}

// runsCode reports whether code of users can run in the part of a pass that calls no handlers. Such code decides about
// handlers, stores the state, delays daemons and timers, or is an edit that has not been written.
func (p *pass) runsCode() bool {
	return p.engine.runsCode || p.resource.runsCode || len(p.resource.Background) > 0 || p.object.writes.HasPending() || p.object.writes.HasEdits()
}

// detachOrEnd detaches a pass with due handlers, and ends any other.
func (w *workers) detachOrEnd(p *pass) ctrl.Result {
	if p.due != nil {
		w.detach(p, func() *call.Call { return p.resume(nil) })
		return ctrl.Result{}
	}
	w.engine.permits.Release()
	return w.end(p)
}

// fail ends the part of a pass that calls no handlers if there is an error: that of code of users that has
// ended the goroutine.
func (p *pass) fail(err error) {
	if err != nil {
		p.due = nil
		p.err = err
	}
}

// detachWithEvents detaches the entire pass over an object with watch events for event
// handlers, unless it must wait for a slot.
func (w *workers) detachWithEvents(p *pass, cached *object.Snapshot) {
	events := eventHandlers{p.target, cached}
	if slot := events.takeSlot(); slot != nil {
		w.detach(p, func() *call.Call { return w.runAfterEvents(p, events, slot) })
	}
}

// runAfterEvents calls the event handlers, and begins the pass. It returns the first call.
func (w *workers) runAfterEvents(p *pass, events eventHandlers, slot *call.Running) *call.Call {
	func() {
		defer w.engine.permits.Continue(p.key.Resource) // also if the goroutine ends: attach returns it
		p.err = events.handleWith(w.calls, slot)
	}()
	if p.err != nil {
		return nil
	}
	p.next, p.err = p.begin(w.writes)
	return p.resume(nil)
}

// begin is the part of a pass that calls no handlers. If any are due, p.due is set, and resume
// calls them.
func (p *pass) begin(ctx context.Context) (next nextPass, err error) {
	defer recovered(&err)
	defer p.endIfGone()

	cached := p.resource.Cached(p.key.NamespacedName)
	if cached == nil {
		return nextPass{}, p.leaveUnwatched(ctx)
	}
	if p.isAtRest(cached) {
		p.isOpen = never
		return nextPass{}, nil
	}

	freshness, err := p.session.Refresh(ctx, cached)
	if err != nil || !freshness.Fresh {
		return nextPass{Due: freshness.WaitFor > 0, After: freshness.WaitFor}, err
	}

	// What an earlier pass could not write comes first: the handlers must not be called again.
	flushed, err := p.session.Flush(ctx)
	if err != nil {
		return nextPass{}, errors.Join(err, p.keepUp(ctx))
	}
	p.finishCycle(flushed)
	if flushed.Gone {
		return nextPass{}, nil
	}

	return p.advance(ctx)
}

// advance makes plans, and carries them out, as long as this changes what there is to do, or until handlers are
// due.
func (p *pass) advance(ctx context.Context) (next nextPass, err error) {
	for ; p.rounds < maxRounds; p.rounds++ {
		if p.resource.FillsIndices && p.session.IsAheadOfWatch() {
			// Handlers are called for what is indexed. The watch indexes the version, and begins a pass.
			return in(p.engine.Settings.Persistence.ConsistencyTimeout), nil
		}
		p.session.StartDetection()
		body := p.session.Body()
		if suspension := p.suspension(body); suspension.Active {
			return p.suspend(suspension), p.leaveSuspended(ctx)
		}
		p.stopBackgroundOfDeleted()

		facts, err := p.facts(ctx, body)
		if err != nil {
			return nextPass{}, err
		}
		c := &cycle{Plan: plan.Make(facts)}
		if recorder := p.engine.Recorder; recorder != nil {
			recorder.Pass(p.resource.Resource.Resource, c.Plan, facts)
		}
		p.object.seen = true
		p.isOpen = c.isOpen
		p.reportDropped(c, body)
		p.reportRequests(c, body)
		p.observeRevisions(c, body)

		if c.MustAddFinalizer() && p.needsFinalizerAlone(c) {
			outcome, err := p.session.Write(ctx, write.Update{Decision: plan.Decision{AddFinalizer: true}})
			if err != nil || outcome.Gone {
				return nextPass{}, err
			}
			continue
		}
		if err := p.syncBackground(c); err != nil {
			return nextPass{}, err
		}
		if err := p.syncTriggers(ctx, c); err != nil {
			return nextPass{}, err
		}

		p.prepare(c)
		if c.hasDue() {
			p.startCalls(c)
			p.due = c
			return nextPass{}, nil
		}
		p.reportMisfits(c)
		again, next, err := p.record(ctx, c)
		if err != nil && c.MustAddFinalizer() {
			p.object.writes.Drop() // no handler has left anything in it, and the finalizer alone may be accepted
		}
		if err != nil || !again {
			return next, err
		}
	}
	return in(0), nil // others take their turns
}

// resume is the part of a pass that calls handlers. It ends a call, which is nil at first, and returns the next one,
// which is made without a permit. After the last one, it records what the handlers have done, and advances again.
func (p *pass) resume(last *call.Call) (next *call.Call) {
	defer recovered(&p.err)
	defer p.endIfGone()
	ctx := p.workers.writes
	for p.due != nil {
		next, failure := p.due.nextCall(last)
		if next != nil {
			return next
		}
		c := p.due
		p.due = nil
		last = nil

		p.err = p.endCalls(c, failure)
		if p.err != nil || p.object.writes.Gone() {
			return nil
		}
		p.reportMisfits(c)
		var again bool
		again, p.next, p.err = p.record(ctx, c)
		if p.err != nil || !again {
			return nil
		}
		p.rounds++
		p.next, p.err = p.advance(ctx)
	}
	return nil
}

// keepUp does what needs no storing, while what is left of the past cannot be stored: it suspends the object, and
// starts and stops its daemons and timers.
func (p *pass) keepUp(ctx context.Context) error {
	if suspension := p.suspension(p.session.Body()); suspension.Active {
		p.suspend(suspension)
		return nil
	}
	p.stopBackgroundOfDeleted()
	c, err := p.plan(ctx, p.session.Body())
	if err != nil || c.MustAddFinalizer() {
		return err
	}
	return p.syncBackground(c)
}

// leaveUnwatched ends the work on an object that is gone or no longer watched.
func (p *pass) leaveUnwatched(ctx context.Context) error {
	if err := p.writeUnwatched(ctx); err != nil {
		return err
	}
	if !(eventHandlers{target: p.target}).isDeletePending() {
		p.cleanUp()
	}
	p.isOpen = never
	return nil
}

// end ends a pass, and returns when the next one is due.
func (w *workers) end(p *pass) ctrl.Result {
	if p.err != nil {
		p.err = handler.Readable(p.err) // it can be that of a storage
		p.isOpen = always
		p.next = in(p.recordFailure(p.err))
	} else {
		p.object.failures = 0
	}
	if p.due != nil { // after a panic
		p.due.returnSlots()
	}
	return w.endTurn(p.key, p.isOpen, p.next)
}

// endTurn passes on the slots that the pass has not used, and returns the request for the next
// pass.
func (w *workers) endTurn(key object.Key, isOpen func(id string) bool, next nextPass) ctrl.Result {
	w.engine.slots.EndPass(key, isOpen)
	return next.result()
}

func always(string) bool { return true }

func never(string) bool { return false }

// endIfGone stops all work on an object that no longer exists.
func (p *pass) endIfGone() {
	if p.object.writes.Gone() {
		p.engine.converger.Forget(p.object.writes.UID())
		p.engine.objects.triggers.Forget(p.key)
		p.object.markGone()
	}
}

// cleanUp removes the state of an object that is gone or no longer watched.
func (p *pass) cleanUp() {
	reason := stop.Deleted
	if !p.resource.IsWatched(p.key.Namespace) {
		reason = stop.Mismatch
	}
	p.engine.converger.Forget(p.object.writes.UID())
	if b := p.engine.objects.remove(p.key, reason); b != nil && reason == stop.Mismatch {
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

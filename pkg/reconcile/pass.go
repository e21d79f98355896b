package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
// A pass has one permit (call.Permits), except while the code of handlers runs, or while a storage of users takes long:
//   - runInWorker takes it before begin. If event handlers are called first, runAfterEvents takes it
//     after them.
//   - begin, advance, and resume have it, in whichever goroutine they run.
//   - During a call, the pass has none: nextCall returns a call that has given the permit back (leave),
//     and ends a call, which takes it again (enter).
//   - During a call of a storage of users, it is lent to others (call.Lend), and taken back afterwards.
//   - Whatever ends the pass gives it back: runInWorker, or attach after the calls.
type pass struct {
	target
	session *write.Session
	// term is when the handlers of the object can be called.
	term *term
	// loan is how the permit is lent to others while storages of users take long. Nil: it never is.
	loan *loan
	// calling is the cycle whose handlers are being called; nil if none are.
	calling *cycle
	// isOpen reports whether a handler will be called in this pass or in a later one, as far
	// as the pass knows.
	isOpen func(id string) bool
	// began is the start of the first handler whose outcome is not persisted.
	began time.Time
	// rounds counts the plans of the pass.
	rounds int32
	// firstLook is set if no earlier pass of this process has looked at the object.
	firstLook bool
	span      *passSpan // nil without a tracer
	// whereabouts is what the pass has found out about an object that has vanished from its watch. Nil: nothing.
	whereabouts *whereabouts
}

// loan is the permit of a pass, as long as storages of users may need it.
type loan struct {
	writes context.Context // with the permit
	begun  chan struct{}   // closed when the permit is lent for the first time
}

// writes returns the context of the part of the pass that calls no handlers.
func (p *pass) writes() context.Context {
	if p.loan == nil {
		return p.term.writes
	}
	return p.loan.writes
}

func (w *workers) newPass(r *resource, key object.Key, in *term) *pass {
	e := w.engine
	p := &pass{target: target{engine: e, resource: r, key: key, object: e.objects.of(key)}, term: in, isOpen: always}
	if e.storesElsewhere {
		begun := make(chan struct{})
		p.loan = &loan{begun: begun, writes: e.permits.With(in.writes, key.Resource, func() { close(begun) })}
	}
	p.report = e.reporterOf(key, func() *object.Body { return p.session.Body() }, &p.object.reported)
	p.firstLook = !p.object.seen
	to := write.Target{
		Key: key, API: r.API, StatusSubresource: r.HasStatusSubresource(), Redefined: r.SetStatusSubresource, Rewound: r.Interrupt,
		Observer: p,
	}
	if e.spans != nil {
		p.span = &passSpan{began: time.Now()}
		to.Trace = p.traceWrite
	}
	p.session = e.writer.Open(&p.object.writes, to, p.report)
	return p
}

// Reconcile makes one pass over the object, or begins it, and returns when the next one must
// begin. Errors of the framework and the API delay only this object.
func (w *workers) Reconcile(_ context.Context, key object.Key) (ctrl.Result, error) {
	e := w.engine
	r := e.resources.get(key.Resource)
	if r == nil || !e.watcher.WaitForIndices(w.stopping) {
		return ctrl.Result{}, nil
	}
	term := w.termOf(r, key)
	if term == nil {
		return ctrl.Result{}, nil
	}
	e.erasures.Begin(w.writes, w.stopping, key) // no pass over a former object is running
	if r.isObservedOnly() && r.Cached(key.NamespacedName) != nil {
		return ctrl.Result{}, nil // it had vanished, and is back
	}
	t := target{engine: e, resource: r, key: key, object: e.objects.of(key)}
	if t.object.anew.CompareAndSwap(true, false) {
		// What is known of the versions of the object belongs to another history of the cluster.
		t.object.reconciledVersion = ""
		t.object.writes.BeginAnew()
		t.object.background.beginAnew()
	}

	if term.tenure.isEnding() {
		return w.runInWorker(w.newPass(r, key, term)), nil
	}
	cached := e.cached(r, key)
	delay := time.Until(t.object.notBefore)
	if term.tenure.isOver() {
		delay = max(delay, validityPolling)
	}
	if cached != nil {
		// Another writer may keep undoing the writes of the operator.
		delay = max(delay, e.writer.ContentionDelay(key, cached))
	}
	if delay > 0 {
		return w.endTurn(key, always, in(delay)), nil
	}

	if len(r.events) > 0 && e.backlog.Has(key) {
		// Event handlers are called before anything else, one after another. If there is no slot for
		// them, the slots request another pass.
		if slot := e.slots.Take(call.Claim{Key: key}); slot != nil {
			p := w.newPass(r, key, term)
			w.detach(p, func() (*call.Call, nextPass, error) { return w.runAfterEvents(p, cached, slot) })
		}
		return ctrl.Result{}, nil
	}
	if t.isAtRest(cached) { // nearly always
		t.object.failures = 0
		return w.endTurn(key, never, nextPass{}), nil
	}
	return w.runInWorker(w.newPass(r, key, term)), nil
}

// validityPolling is when the next pass begins over an object whose shard the replica may not hold anymore.
const validityPolling = time.Second

// workerPatience is how long a worker waits for the part of a pass that calls no handlers: filters of users may never
// return, and a pause waits for the workers. It does not wait for a storage that takes long.
const workerPatience = time.Second

// runInWorker makes the part of a pass that calls no handlers, and detaches the rest.
func (w *workers) runInWorker(p *pass) ctrl.Result {
	e := w.engine
	if !e.permits.Begin(p.key.Resource, w.stopping) {
		return ctrl.Result{}
	}
	// From here on, the pass has its permit, also in the goroutines in which it may go on. The goroutine of begin
	// sets next before it sends its error.
	var next nextPass
	var err error
	// Code of users decides about handlers, stores the state, delays daemons and timers, or is an edit that
	// has not been written. It may not return, so it has its own goroutine. Without it, none is needed, which
	// takes less time.
	runsCode := e.runsCode || p.resource.runsCode || len(p.resource.Background) > 0 || p.object.writes.HasEdits()
	if runsCode {
		began := handler.Start(func() (err error) {
			next, err = p.begin(p.writes())
			return err
		})
		patience := time.NewTimer(workerPatience)
		defer patience.Stop()
		var lent chan struct{}
		if p.loan != nil {
			lent = p.loan.begun
		}
		isWaiting := false
		select {
		case err = <-began:
		case <-patience.C:
			isWaiting = true
		case <-lent:
			isWaiting = true
		}
		if isWaiting {
			w.detach(p, func() (*call.Call, nextPass, error) {
				err := <-began
				return p.afterBegin(next, err)
			})
			return ctrl.Result{}
		}
	} else {
		next, err = p.begin(p.writes())
	}
	if err == nil && p.calling != nil {
		w.detach(p, func() (*call.Call, nextPass, error) { return p.afterBegin(next, nil) })
		return ctrl.Result{}
	}
	e.permits.Release()
	return w.end(p, next, err)
}

// runAfterEvents calls the event handlers without a permit, begins the pass, and goes on as resume does.
func (w *workers) runAfterEvents(p *pass, cached *object.Snapshot, slot *call.Running) (first *call.Call, next nextPass, err error) {
	err = func() (err error) {
		defer w.engine.permits.Continue(p.key.Resource) // also if the goroutine ends: attach returns it
		defer recovered(&err)
		defer w.engine.slots.Return(slot)
		return p.handleEvents(p.term.calls, cached)
	}()
	if err != nil {
		return nil, nextPass{}, err
	}
	next, err = p.begin(p.writes())
	return p.afterBegin(next, err)
}

// afterBegin returns the first call of a handler, with what begin has returned. Without a call, the pass has ended.
func (p *pass) afterBegin(next nextPass, err error) (first *call.Call, after nextPass, failure error) {
	if err != nil || p.calling == nil {
		return nil, next, err
	}
	return p.resume(nil)
}

// begin is the part of a pass that calls no handlers. If any can be called, p.calling is set, and resume
// calls them. Otherwise, the pass has ended, and begin returns when the next one must begin.
func (p *pass) begin(ctx context.Context) (next nextPass, err error) {
	defer recovered(&err)
	defer p.endIfGone()

	cached := p.engine.cached(p.resource, p.key)
	if cached != nil && p.term.tenure.isEnding() {
		return p.leaveShard(ctx, cached)
	}
	if last := p.vanished(cached); last != nil {
		return p.leaveVanished(ctx, last)
	}
	if cached == nil {
		return nextPass{}, p.leaveUnwatched(ctx)
	}
	if p.isAtRest(cached) {
		p.isOpen = never
		return nextPass{}, nil
	}

	freshness, err := p.session.Refresh(ctx, cached)
	if err != nil || !freshness.Fresh {
		return nextPass{Needed: freshness.WaitFor > 0, After: freshness.WaitFor}, err
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

// advance makes plans, and carries them out, as long as this changes what there is to do, or until handlers can
// be called: then, p.calling is set. Otherwise, it returns when the next pass must begin.
func (p *pass) advance(ctx context.Context) (next nextPass, err error) {
	for ; p.rounds < maxRounds; p.rounds++ {
		if p.resource.FillsIndices && p.session.IsAheadOfWatch() {
			// Handlers are called for what is indexed. The watch indexes the version, and begins a pass.
			return in(p.engine.Settings.Persistence.ConsistencyTimeout), nil
		}
		p.session.StartDetection()
		body := p.session.Body()
		if suspension := p.suspension(body); suspension.Active {
			next := p.suspend(suspension)
			_, err := p.session.Write(ctx, write.Update{}) // what handlers have left before the suspension
			return next, err
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
		p.isOpen = c.isOpen
		p.traceCycle(c)
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

		if err := p.prepare(c); err != nil {
			return nextPass{}, err
		}
		if c.lineUp() {
			p.startCalls(c)
			p.calling = c
			return nextPass{}, nil
		}
		p.reportMisfits(c)
		again, next, err := p.record(ctx, c)
		if err != nil && c.MustAddFinalizer() {
			p.object.writes.Drop(err) // no handler has left anything in it, and the finalizer alone may be accepted
		}
		if err != nil || !again {
			return next, err
		}
	}
	return in(0), nil // others take their turns
}

// resume is the part of a pass that calls handlers. It ends a call, which is nil at first, and returns the next one,
// which is made without a permit. After the last one, it records what the handlers have done, and advances again.
// Without another call, the pass has ended, and resume returns when the next one must begin.
func (p *pass) resume(last *call.Call) (following *call.Call, next nextPass, err error) {
	defer recovered(&err)
	defer p.endIfGone()
	ctx := p.writes()
	for p.calling != nil {
		c := p.calling
		following, failure := c.nextCall(last)
		if following != nil {
			return following, nextPass{}, nil
		}
		p.calling = nil
		last = nil

		if err := p.endCalls(c, failure); err != nil || p.object.writes.Gone() {
			return nil, nextPass{}, err
		}
		p.reportMisfits(c)
		again, after, err := p.record(ctx, c)
		if err != nil || !again {
			return nil, after, err
		}
		p.rounds++
		next, err = p.advance(ctx)
		if err != nil {
			return nil, nextPass{}, err
		}
	}
	return nil, next, nil
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
	if !p.resource.IsWatched(p.key.Namespace) && p.object.writes.HasPending() {
		// Mostly, the resource is redefined. The handlers must not be called again under the new definition,
		// whose watch begins afterwards.
		var written write.Outcome
		freshness, err := p.session.ReadLive(ctx)
		if freshness.Fresh {
			written, err = p.session.Flush(ctx)
		}
		if !apierrors.IsNotFound(err) { // otherwise, this version of the resource is not served anymore
			p.finishCycle(written)
			if err != nil {
				return err
			}
		}
	}

	p.isOpen = never
	waits := len(p.resource.events) > 0 && !p.object.deleteEventHandled || !p.resource.Selection.IsEmpty()
	if p.resource.IsWatched(p.key.Namespace) && waits && p.object.writes.UID() != "" {
		return nil // the watch will show the deletion, for which the event handlers have not been called, or that it vanishes
	}
	reason := stop.Deleted
	if !p.resource.IsWatched(p.key.Namespace) {
		reason = stop.Mismatch
	}
	p.engine.converger.Forget(p.object.writes.UID())
	p.engine.spans.endCycle(p.key, "gone")
	if b := p.engine.objects.remove(p.key, reason); b != nil && reason == stop.Mismatch {
		p.resource.leaving.add(b.group)
	}
	return nil
}

// end ends a pass, and returns when the next one must begin.
func (w *workers) end(p *pass, next nextPass, err error) ctrl.Result {
	if err != nil {
		p.isOpen = always
		next = in(p.recordFailure(handler.Readable(err))) // it can be that of a storage
	} else {
		p.object.failures = 0
		next = soonest(next, p.lookAgain())
	}
	p.endSpan(err)
	if p.calling != nil { // after a panic
		p.calling.returnSlots()
	}
	return w.endTurn(p.key, p.isOpen, next)
}

// urgent is the priority of the next pass, even if the last one was not urgent.
var urgent = new(0)

// endTurn passes on the slots that the pass has not used, and returns the request for the next
// pass.
func (w *workers) endTurn(key object.Key, isOpen func(id string) bool, next nextPass) ctrl.Result {
	w.engine.slots.EndPass(key, isOpen)
	return ctrl.Result{RequeueAfter: next.requeueAfter(), Priority: urgent}
}

func always(string) bool { return true }

func never(string) bool { return false }

// endIfGone stops all work on an object that no longer exists.
func (p *pass) endIfGone() {
	if p.object.writes.Gone() {
		p.engine.converger.Forget(p.object.writes.UID())
		p.engine.objects.triggers.Forget(p.key)
		p.engine.spans.endCycle(p.key, "gone")
		p.object.markGone()
	}
}

// recovered converts a panic in the engine to an error, so that one object cannot stop the
// others. (Panics in handlers are recovered in their calls.)
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("a panic in a filter, in a storage, or in the framework itself: %v\n%s", value, debug.Stack())
	}
}

// nextPass says when the next pass over an object must begin. The zero value means that none is needed until something
// happens.
type nextPass struct {
	Needed bool
	After  time.Duration // 0: at once
}

// in returns that a pass is needed after a delay.
func in(delay time.Duration) nextPass { return nextPass{Needed: true, After: max(0, delay)} }

// soonest returns the earlier of two.
func soonest(a, b nextPass) nextPass {
	if !a.Needed || b.Needed && b.After < a.After {
		return b
	}
	return a
}

// requeueAfter returns the delay for queues, for which 0 means none.
func (n nextPass) requeueAfter() time.Duration {
	if !n.Needed {
		return 0
	}
	return max(n.After, time.Nanosecond)
}

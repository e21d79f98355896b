package reconcile

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
)

// maxRounds limits how often a pass continues immediately after its own writes. More rounds
// are needed only if handlers keep undoing each other's changes; then the queue lets other
// objects take turns.
const maxRounds = 8

// pass is one run of the engine over one object.
type pass struct {
	target
	session  *write.Session
	stopping <-chan struct{}
	// began is the start of the first handler whose outcome is not persisted.
	began time.Time
	// firstLook is set if no earlier pass of this process has looked at the object.
	firstLook bool
}

func (w *workers) newPass(r *resource, key object.Key) *pass {
	e := w.engine
	p := &pass{target: target{engine: e, resource: r, key: key, object: e.objects.of(key)}, stopping: w.stopping}
	p.report = e.reporter(key, &p.object.reported)
	p.firstLook = !p.object.seen
	p.session = e.writer.Open(&p.object.writes, write.Target{
		Key: key, API: r.API, StatusSubresource: r.HasStatusSubresource(), Redefined: r.SetStatusSubresource,
	}, p.report)
	return p
}

// Reconcile makes one pass over the object, and returns when the next one is due. Errors of
// the framework and the API delay only this object.
func (w *workers) Reconcile(_ context.Context, key object.Key) (ctrl.Result, error) {
	r := w.engine.resources.get(key.Resource)
	if r == nil || !w.engine.watcher.WaitForIndices(w.stopping) {
		return ctrl.Result{}, nil
	}
	p := w.newPass(r, key)
	if delay := max(time.Until(p.object.notBefore), p.contentionDelay()); delay > 0 {
		return ctrl.Result{RequeueAfter: delay}, nil
	}
	wake, err := p.run(w.calls)
	if err != nil {
		return ctrl.Result{RequeueAfter: p.recordFailure(err)}, nil
	}
	p.object.failures = 0
	return ctrl.Result{RequeueAfter: wake}, nil
}

// run is the entire pass: observe, detect, execute, record, write, wake.
func (p *pass) run(ctx context.Context) (wake time.Duration, err error) {
	defer recovered(&err)
	defer p.endIfGone()
	fresh, wait, err := p.observe(ctx)
	if err != nil || !fresh {
		return wait, err
	}
	flushed, err := p.session.Flush(ctx)
	if err != nil {
		return 0, err
	}
	if p.finishCycle(flushed); flushed.Gone {
		return 0, nil
	}
	if suspension := p.suspension(p.session.Body()); suspension.Active {
		p.object.background.suspend()
		return p.leaveSuspended(ctx, suspension)
	}
	for range maxRounds {
		again, wake, err := p.round(ctx)
		if err != nil || !again {
			return wake, err
		}
	}
	return time.Nanosecond, nil // the next pass is due immediately
}

// observe gets the latest known version of the object. It returns false if there is nothing
// to do, or if the pass must wait.
func (p *pass) observe(ctx context.Context) (fresh bool, wait time.Duration, err error) {
	cached := p.resource.Cached(p.key.NamespacedName)
	events := eventHandlers{p.target, cached}
	events.handle(ctx)
	if cached == nil {
		if !events.isDeletePending() {
			p.cleanUp()
		}
		return false, 0, nil
	}
	p.resetFor(cached.GetUID())
	p.object.background.refresh()
	p.object.writes.Add(p.object.background.takeEdits()...)
	if p.object.writes.IsReconciled(cached.GetResourceVersion(), p.object.reconciledVersion) && !p.object.background.isRequeueRequested() {
		return false, 0, nil // reconciled and unchanged
	}
	freshness, err := p.session.Refresh(ctx, cached)
	return freshness.Fresh, freshness.WaitFor, err
}

// round advances the object by one update. It returns true if the update has changed what
// there is to do.
func (p *pass) round(ctx context.Context) (again bool, wake time.Duration, err error) {
	p.session.StartDetection()
	p.stopBackgroundOfDeleted()
	c, err := detector{p.target}.detect(ctx, p.session.Body())
	if err != nil {
		return false, 0, err
	}
	p.object.seen = true
	p.reportDropped(c, p.session.Body())
	p.reportRequests(c, p.session.Body())
	if c.mustAddFinalizer() {
		return p.addFinalizer(ctx)
	}
	if err := p.syncBackground(c); err != nil {
		return false, 0, err
	}
	if c.nothingToDo() {
		p.reportMisfits(c)
		return p.leaveAlone(ctx, c)
	}
	if err := p.execute(ctx, c); err != nil || p.object.writes.Gone() {
		return false, 0, err
	}
	p.reportMisfits(c)
	return p.record(ctx, c)
}

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

// lastingFailures is the number of consecutive errors after which an event reports them
// once.
const lastingFailures = 2

// recordFailure returns the delay of an object after an error that does not come from its
// handlers.
func (p *pass) recordFailure(err error) time.Duration {
	delays := p.engine.Settings.Queueing.ErrorDelays
	delay := time.Nanosecond
	if len(delays) > 0 {
		delay = max(delays[min(int(p.object.failures), len(delays)-1)], kube.RetryAfter(err))
	}
	p.object.failures++
	p.engine.Metrics.Error(p.key.Resource)
	p.object.notBefore = time.Now().Add(delay)
	p.report.Log.Error(err, "The object cannot be handled now; it will be retried.", "failures", p.object.failures, "delay", delay.String())
	if p.object.failures == lastingFailures {
		p.reportRetry(err)
	}
	return delay
}

// reportRetry posts an event about a lasting error. It uses only what is known about the
// object without reading it.
func (p *pass) reportRetry(err error) {
	body := p.session.Body()
	if body == nil {
		cached := p.resource.Cached(p.key.NamespacedName)
		if cached == nil {
			return
		}
		body = cached.Body()
	}
	p.report.Event(body, report.Warning, "ReconcileError", fmt.Sprintf("The object cannot be handled now; it will be retried: %s", err))
}

// recovered converts a panic in the engine to an error, so that one object cannot stop the
// others. (Panics in handlers are recovered in their calls.)
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("a panic in a filter, in a storage, or in the framework itself: %v\n%s", value, debug.Stack())
	}
}

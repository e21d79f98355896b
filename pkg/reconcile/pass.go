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

// maxRounds is how often a pass continues at once on what it has just written. More is
// never needed, except for handlers that keep undoing each other's work: then the queue
// lets other objects have their turn in between.
const maxRounds = 8

// pass is one run of the engine over one object.
type pass struct {
	target
	session  *write.Session
	stopping <-chan struct{}
	// began is when the first handler was called of which nothing is persisted.
	began time.Time
}

func (w *workers) newPass(r *resource, key object.Key) *pass {
	e := w.engine
	p := &pass{target: target{engine: e, resource: r, key: key, object: e.objects.of(key)}, stopping: w.stopping}
	p.report = e.reporter(key, &p.object.reported)
	p.session = e.writer.Open(&p.object.writes, write.Target{Key: key, API: r.API, StatusSubresource: r.Status}, p.report)
	return p
}

// Reconcile makes one pass over the object, and returns when the next one is due.
// Errors of the framework and of the API pause the object, and that object only.
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

// run is the whole story of a pass: observe, detect, execute, record, write, wake.
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
	for range maxRounds {
		again, wake, err := p.round(ctx)
		if err != nil || !again {
			return wake, err
		}
	}
	return time.Nanosecond, nil // the next pass, at once
}

// observe takes the freshest version of the object that is known. It returns false when
// there is nothing to do, or when that has to wait.
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
		return false, 0, nil // nothing was left to do, and nothing has happened
	}
	freshness, err := p.session.Refresh(ctx, cached)
	return freshness.Fresh, freshness.WaitFor, err
}

// round brings the object one step ahead: as far as one update reaches. It must be
// called again when that update has changed what there is to do.
func (p *pass) round(ctx context.Context) (again bool, wake time.Duration, err error) {
	p.session.StartDetection()
	p.stopBackgroundOfDeleted()
	c, err := detector{p.target}.detect(ctx, p.session.Body())
	if err != nil {
		return false, 0, err
	}
	if c.mustAddFinalizer() {
		return p.addFinalizer(ctx)
	}
	if err := p.syncBackground(c); err != nil {
		return false, 0, err
	}
	if c.nothingToDo() {
		return p.leaveAlone(ctx, c)
	}
	if err := p.execute(ctx, c); err != nil || p.object.writes.Gone() {
		return false, 0, err
	}
	return p.record(ctx, c)
}

// endIfGone ends everything that is done with an object that does not exist anymore.
func (p *pass) endIfGone() {
	if p.object.writes.Gone() {
		p.object.markGone()
	}
}

// cleanUp forgets an object that is gone, or that is not watched anymore.
func (p *pass) cleanUp() {
	reason := handler.StopDeleted
	if !p.resource.IsWatched(p.key.Namespace) {
		reason = handler.StopMismatch
	}
	if b := p.engine.objects.remove(p.key, reason); b != nil && reason == handler.StopMismatch {
		p.resource.leaving.add(b.group)
	}
}

// lastingFailures is how many errors in a row are more than a mishap: then an event
// reports them, once.
const lastingFailures = 2

// recordFailure returns for how long an object is left alone after an error that is not
// its handlers'.
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

// reportRetry posts an event about an error that lasts, with what is known of the
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

// recovered makes an error of a panic in the engine itself, so that one object cannot
// stop the others. (Panics in handlers are caught where they are called.)
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("a panic in a filter, in a storage or in the framework itself: %v\n%s", value, debug.Stack())
	}
}

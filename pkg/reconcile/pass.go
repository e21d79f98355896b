package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// maxRounds is how often a pass continues at once on what it has just written.
// More is never needed, but for handlers that undo each other's work without
// end: then the queue lets other objects have their turn in between.
const maxRounds = 8

// pass is one visit to one object.
type pass struct {
	*Engine
	*served
	key    object.Key
	memory *memory
	log    logr.Logger
	// body is the object as it is known now: as the watch, a direct read or our
	// own last write has shown it.
	body *object.Body
	// foreign tells that others have written to the object since it was looked
	// at: what they have changed is not detected yet.
	foreign bool
	// began is when the first handler was called of which nothing is persisted.
	began time.Time
}

// Reconcile makes one pass over the object, and tells when the next one is due.
// Errors of the framework and of the API pause the object, and that object only.
func (e *Engine) Reconcile(_ context.Context, key object.Key) (ctrl.Result, error) {
	resource := e.served.get(key.Resource)
	if resource == nil || !e.filling.wait(e.stopping) {
		return ctrl.Result{}, nil
	}
	p := &pass{Engine: e, served: resource, key: key, memory: e.memories.of(key)}
	p.log = e.logger(key)
	if pause := max(time.Until(p.memory.notBefore), p.respite()); pause > 0 {
		return ctrl.Result{RequeueAfter: pause}, nil
	}
	defer p.acknowledge()
	wake, err := p.run(e.working)
	if err != nil {
		return ctrl.Result{RequeueAfter: p.pause(err)}, nil
	}
	p.memory.failures = 0
	return ctrl.Result{RequeueAfter: wake}, nil
}

func (e *Engine) logger(key object.Key) logr.Logger {
	return e.Logger.WithValues("object", mention{e, key}, "resource", key.Resource)
}

// run is the whole story of a pass.
func (p *pass) run(ctx context.Context) (wake time.Duration, err error) {
	defer recovered(&err)
	present, wait, err := p.observe(ctx)
	if err != nil || !present {
		return wait, err
	}
	if err := p.settlePending(ctx); err != nil {
		return 0, ignoreGone(err)
	}
	for range maxRounds {
		again, wake, err := p.round(ctx)
		if err != nil || !again {
			return wake, err
		}
	}
	return time.Nanosecond, nil // the next pass, at once
}

// round brings the object one step ahead: as far as one intent reaches. It is
// to be called again when that intent has changed what is to be done.
func (p *pass) round(ctx context.Context) (again bool, wake time.Duration, err error) {
	c, err := p.detect(ctx)
	if err != nil {
		return false, 0, err
	}
	if c.mustBeHeld() {
		return p.hold(ctx)
	}
	if err := p.attend(c); err != nil {
		return false, 0, err
	}
	if c.blind() {
		return p.leave(ctx, c)
	}
	if err := p.execute(ctx, c); err != nil {
		return false, 0, ignoreGone(err)
	}
	return p.record(ctx, c)
}

// persistent is how many errors in a row are more than a mishap: then an event tells
// of them, once.
const persistent = 2

// pause is how long an object is left alone after an error that is none of its
// handlers' errors.
func (p *pass) pause(err error) time.Duration {
	delays := p.Settings.Queueing.ErrorDelays
	delay := time.Nanosecond
	if len(delays) > 0 {
		delay = max(delays[min(p.memory.failures, len(delays)-1)], kube.RetryAfter(err))
	}
	p.memory.failures++
	p.Metrics.Error(p.key.Resource)
	p.memory.notBefore = time.Now().Add(delay)
	p.log.Error(err, "The object cannot be handled now; it will be retried.", "failures", p.memory.failures, "delay", delay.String())
	if p.memory.failures == persistent {
		p.postpone(err)
	}
	return delay
}

// postpone tells of an error that lasts, by what is known of the object without
// reading it.
func (p *pass) postpone(err error) {
	body := p.body
	if body == nil {
		snapshot := p.cached(p.key.NamespacedName)
		if snapshot == nil {
			return
		}
		body = snapshot.Body()
	}
	p.post(body, warning, "ReconcileError", fmt.Sprintf("The object cannot be handled now; it will be retried: %s", err))
}

// recovered makes an error of a panic in the engine itself, so that one object
// cannot stop the others. (Panics in handlers are caught where they are called.)
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("a panic in a filter, in a storage or in the framework itself: %v\n%s", value, stack())
	}
}

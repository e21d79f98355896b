package reconcile

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
)

// A watch with selectors shows the same for an object that is deleted, and for one that does not match the selectors
// anymore: the object vanishes. The next pass finds out which of them it is:
//
//	observeVanished → findAgain → deleted:      as without selectors
//	                            → out of sight: leaveSight
//
// An object that is out of sight is forgotten, after its daemons have ended, and what was left to write is written. The
// finalizer is removed, because nothing would show that the object is deleted. If its deletion has begun already, it
// is finished first, with direct reads in place of the watch.

// sightInterval is the interval of direct reads of an object that is out of sight while work on it is left.
const sightInterval = 30 * time.Second

// whereabouts is whether an object still exists.
type whereabouts struct {
	uid    types.UID
	exists bool
}

// observeVanished lets the next pass find out what has become of an object that a watch does not show anymore. Without
// workers, the object is forgotten, as one that is deleted.
func (c consumer) observeVanished(r *resource, key object.Key, event object.WatchEvent) {
	e := c.engine
	isFollowed := e.children.HasFollowers(r.asChild, event.Snapshot)
	if !isFollowed { // the index has no children of a resource that is not asChild
		e.children.Observe(r.asChild, object.WatchEvent{Type: apiwatch.Deleted, Snapshot: event.Snapshot})
	}
	if len(r.events) > 0 {
		e.backlog.Push(key, event)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	isHandled := !r.isObservedOnly() && e.currentQueue() != nil
	if !isHandled {
		e.objects.remove(key, stop.Mismatch)
	}
	if isFollowed || isHandled {
		e.objects.vanish(key, event.Snapshot)
		e.enqueue(key)
	}
}

// observeReturn notes that a watch shows an object again, or another one of its name, whose predecessor was deleted.
func (c consumer) observeReturn(r *resource, key object.Key, event object.WatchEvent) {
	if r.Selection.IsEmpty() { // nothing vanishes, and no event needs the lock
		return
	}
	last := c.engine.objects.reappear(key)
	if last != nil && last.GetUID() != event.Snapshot.GetUID() {
		c.engine.children.Observe(r.asChild, object.WatchEvent{Type: apiwatch.Deleted, Snapshot: last})
	}
}

// vanished returns the last version of an object that has vanished from its watch, or nil.
func (p *pass) vanished(cached *object.Snapshot) *object.Snapshot {
	if cached != nil || !p.resource.IsWatched(p.key.Namespace) {
		return nil
	}
	return p.engine.objects.lastOf(p.key)
}

// findAgain reports whether an object that has vanished from its watch still exists. A pass asks once.
func (p *pass) findAgain(ctx context.Context, uid types.UID) (bool, error) {
	if known := p.whereabouts; known != nil && known.uid == uid {
		return known.exists, nil
	}
	exists, err := p.session.FindAgain(ctx, uid)
	if err != nil {
		return false, err
	}
	p.whereabouts = &whereabouts{uid, exists}
	return exists, nil
}

// leaveVanished ends the work on an object that has vanished from its watch.
func (p *pass) leaveVanished(ctx context.Context, last *object.Snapshot) (next nextPass, err error) {
	p.isOpen = never
	p.resetFor(last.GetUID())
	exists, err := p.findAgain(ctx, last.GetUID())
	if err != nil {
		return nextPass{}, err
	}
	event := object.WatchEvent{Type: object.Vanished, Snapshot: last}
	if !exists {
		event.Type = apiwatch.Deleted
		if p.engine.Recorder != nil {
			p.engine.Recorder.Event(p.resource.Resource.Resource, p.resource.Declared, event)
		}
	}
	p.engine.objects.ifVanished(p.key, last, func() { p.engine.children.Observe(p.resource.asChild, event) })
	switch {
	case !exists:
		next := p.forgetVanished(last, stop.Deleted)
		if p.engine.erasures != nil && p.resource.storesState() {
			p.engine.erasures.Add(p.key, last)
			return in(0), nil // the erasure begins in the next turn
		}
		return next, nil
	case p.resource.isObservedOnly():
		return p.forgetVanished(last, stop.Mismatch), nil
	default:
		return p.leaveSight(ctx, last)
	}
}

// leaveSight ends the work on an object that exists, but does not match the selectors of its watch.
func (p *pass) leaveSight(ctx context.Context, last *object.Snapshot) (next nextPass, err error) {
	if !p.hasToWrite(last) {
		return p.forgetVanished(last, stop.Mismatch), nil
	}
	freshness, err := p.session.ReadLive(ctx)
	if err != nil || !freshness.Fresh {
		return nextPass{}, err
	}
	flushed, err := p.session.Flush(ctx)
	if err != nil {
		return nextPass{}, err
	}
	p.finishCycle(flushed)
	if flushed.Gone {
		return nextPass{}, nil
	}
	if p.isHeldForDeletion(p.session.Body()) {
		return p.advance(ctx)
	}

	b := p.object.background
	daemonsRun := false
	if b != nil {
		b.group.Sync(nil, false)           // not for good: the object can be back before its daemons have ended
		daemonsRun = b.areDaemonsRunning() // their end requests a pass, which also writes what they have left
		p.object.writes.Add(b.takeEdits()...)
	}
	decide := func(ctx context.Context, body *object.Body) (plan.Decision, error) {
		isBack := p.engine.cached(p.resource, p.key) != nil
		if isBack || p.isHeldForDeletion(body) { // its handlers are called
			return plan.Decision{}, nil
		}
		now, err := p.plan(ctx, body)
		if err != nil {
			return plan.Decision{}, err
		}
		return plan.Decision{RemoveFinalizer: now.HasFinalizer && !now.Unserved && !daemonsRun}, nil
	}
	decision, err := decide(ctx, p.session.Body())
	if err != nil {
		return nextPass{}, err
	}
	written, err := p.session.Write(ctx, write.Update{Decision: decision, Decide: decide})
	switch {
	case err != nil || written.Gone:
		return nextPass{}, err
	case p.isHeldForDeletion(p.session.Body()):
		return in(0), nil
	case daemonsRun:
		return nextPass{}, nil
	}
	if decision.RemoveFinalizer && !p.hasFinalizer(p.session.Body()) {
		p.report.Log.Info("The object does not match the selectors of the settings anymore. The finalizer of the operator is removed: if the object is deleted, no handlers are called for that.")
	}
	return p.forgetVanished(last, stop.Mismatch), nil
}

// hasToWrite reports whether there can be something to write to an object that is out of sight.
func (p *pass) hasToWrite(last *object.Snapshot) bool {
	canHaveFinalizer := len(p.resource.Changing) > 0 || len(p.resource.Background) > 0 || p.hasFinalizer(last.Body())
	return canHaveFinalizer || p.object.writes.HasPending() || p.object.writes.HasEdits()
}

// isHeldForDeletion reports whether an object is being deleted, and waits for the operator.
func (p *pass) isHeldForDeletion(body *object.Body) bool {
	return body.Deleting() && p.hasFinalizer(body)
}

func (p *pass) hasFinalizer(body *object.Body) bool {
	return slices.Contains(body.Finalizers(), p.engine.Settings.Persistence.Finalizer)
}

// forgetVanished removes everything about an object that is deleted or out of sight. If the watch shows the object again,
// or another one of its name, it only returns that the next pass looks at that.
func (p *pass) forgetVanished(last *object.Snapshot, reason stop.Reason) nextPass {
	o := &p.engine.objects
	if !o.ifVanished(p.key, last, func() { delete(o.vanished, p.key) }) {
		return in(0)
	}
	p.engine.converger.Forget(p.object.writes.UID())
	o.remove(p.key, reason)
	return nextPass{}
}

// lookAgain returns when the next pass must look at an object that has vanished from its watch, and is not forgotten yet.
// No event begins one.
func (p *pass) lookAgain() nextPass {
	switch {
	case p.whereabouts == nil || p.engine.objects.lastOf(p.key) == nil:
		return nextPass{}
	case p.object.writes.Gone():
		return in(0)
	default:
		return in(sightInterval)
	}
}

// vanish keeps the last version of an object that has vanished from its watch.
func (o *objects) vanish(key object.Key, last *object.Snapshot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.vanished == nil {
		o.vanished = map[object.Key]*object.Snapshot{}
	}
	o.vanished[key] = last
}

// reappear removes and returns what vanish has kept, or nil.
func (o *objects) reappear(key object.Key) *object.Snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := o.vanished[key]
	delete(o.vanished, key)
	return last
}

// lastOf returns what vanish has kept, or nil.
func (o *objects) lastOf(key object.Key) *object.Snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.vanished[key]
}

// ifVanished calls a function unless a watch has shown the object again, or another one of its name. That is not noted
// before the function returns.
func (o *objects) ifVanished(key object.Key, last *object.Snapshot, do func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.vanished[key] != last {
		return false
	}
	do()
	return true
}

// vanishedIn returns the objects of a stream that have vanished from it.
func (o *objects) vanishedIn(stream object.StreamKey) []object.Key {
	o.mu.Lock()
	defer o.mu.Unlock()
	var keys []object.Key
	for key := range o.vanished {
		if stream.Has(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// forgetVanished removes what vanish has kept of a stream.
func (o *objects) forgetVanished(stream object.StreamKey) {
	for _, key := range o.vanishedIn(stream) {
		o.reappear(key)
	}
}

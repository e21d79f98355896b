package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/queue"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
	"github.com/kopf-go/kopf/pkg/shards"
)

// A replica of an operator with shards handles the objects of the shards that it holds. For each of them it has a tenure:
//
//	HoldShard → Watcher.Show: list the objects
//	          → takeOver: passes begin, in the term of the tenure
//	          …
//	          → the context is done: drain
//	              → passes go on to the end of their calls, as at a shutdown; others begin no calls
//	              → leaveShard: daemons end, and what is left is written; the object is forgotten
//	          → Watcher.Hide, and HoldShard returns: another replica may handle the objects
//
// Objects of other shards do not exist for passes, also if a watch shows them for an index.

// tenure is the time in which this replica holds a shard.
type tenure struct {
	shard   int
	lease   Lease
	holding context.Context // until the shard must be given up
	kept    context.Context // until its Lease is lost, or the operator is aborted
	// asked is the queue that has been asked for passes over all objects that are left. Only drain uses it.
	asked *queue.Queue
	// leaving are the daemons and timers of objects that are forgotten already.
	leaving groups

	mu      sync.Mutex
	workers *workers // of the term
	term    *term    // passes of earlier workers keep theirs
	end     func()   // ends the term
}

// Lease says whether this replica holds a shard. It is safe for concurrent use.
type Lease interface {
	// Valid reports whether no other replica can hold the shard now. It takes no locks.
	Valid() bool
	// Lost returns a channel that is closed when another replica can hold the shard.
	Lost() <-chan struct{}
}

// errLost is the cause of the contexts of handlers when the Lease of a shard is lost.
var errLost = errors.New("the lease of the shard is lost")

// errLeaving is the cause of the contexts of handlers that have not returned when another replica must take over.
var errLeaving = errors.New("another replica takes over the object")

// tenures are those of one replica. It is safe for concurrent use.
type tenures struct {
	division shards.Division
	// observing is read-locked while an event of a watch is taken in.
	observing sync.RWMutex

	mu      sync.RWMutex
	current map[int]*tenure // by shard
}

// of returns the tenure of an object's shard, or nil if this replica does not hold it.
func (t *tenures) of(namespace string, uid types.UID) *tenure {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.current[t.division.Of(namespace, uid)]
}

// ofSnapshot is like of.
func (t *tenures) ofSnapshot(snapshot *object.Snapshot) *tenure {
	return t.of(snapshot.GetNamespace(), snapshot.GetUID())
}

// shards returns the shards that this replica handles.
func (t *tenures) shards() []int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Sorted(maps.Keys(t.current))
}

func (t *tenures) put(one *tenure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		t.current = map[int]*tenure{}
	}
	t.current[one.shard] = one
}

func (t *tenures) remove(one *tenure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.current, one.shard)
}

// all returns the current ones.
func (t *tenures) all() []*tenure {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Values(t.current))
}

// awaitEvents waits until all events are taken in that have begun to be.
func (t *tenures) awaitEvents() {
	t.observing.Lock()
	t.observing.Unlock() //nolint:gocritic,staticcheck // it only waits
}

// isEnding reports whether the shard must be given up.
func (t *tenure) isEnding() bool { return t != nil && t.holding.Err() != nil }

// isLost reports whether another replica may hold the shard already.
func (t *tenure) isLost() bool { return t.kept.Err() != nil }

// termIn returns the term of the tenure, as long as some workers work.
func (t *tenure) termIn(w *workers) *term {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.workers != w {
		t.endTerm()
		ctx, cancel := context.WithCancelCause(w.active)
		stop := context.AfterFunc(t.holding, func() { cancel(errLeaving) })
		begun, end := w.engine.begin(ctx, t.kept)
		begun.tenure = t
		t.term = &begun
		t.workers = w
		t.end = func() {
			stop()
			end()
			cancel(nil)
		}
	}
	return t.term
}

// endTerm ends the term of the last workers. The lock is held.
func (t *tenure) endTerm() {
	if t.end != nil {
		t.end()
	}
}

// isOver reports whether no handler can be called anymore: the shard must be given up, or it may be lost.
func (t *tenure) isOver() bool { return t != nil && (t.isEnding() || !t.lease.Valid()) }

// isSharded reports whether the objects are divided among replicas.
func (e *Engine) isSharded() bool { return !e.Division.IsZero() }

// isOthers reports whether another replica handles an object.
func (e *Engine) isOthers(snapshot *object.Snapshot) bool {
	return e.isSharded() && e.tenures.ofSnapshot(snapshot) == nil
}

// cached returns the latest version of an object that this replica handles, or nil.
func (e *Engine) cached(r *resource, key object.Key) *object.Snapshot {
	snapshot := r.Cached(key.NamespacedName)
	if snapshot == nil || e.isOthers(snapshot) {
		return nil
	}
	return snapshot
}

// HoldShard handles the objects of a shard until the context is done, and returns when nothing handles them anymore: handlers
// end as at a shutdown. The engine must be ready. If the Lease is lost, another replica may handle the objects already: handlers are canceled, and
// nothing is written. Code of users that never returns holds HoldShard up for ever.
func (e *Engine) HoldShard(ctx context.Context, shard int, lease Lease) {
	began := time.Now()
	if e.watcher.Show(ctx, shard) {
		kept, lose := context.WithCancelCause(e.abortContext)
		defer lose(nil)
		go func() {
			select {
			case <-lease.Lost():
				lose(errLost)
			case <-kept.Done():
			}
		}()
		t := &tenure{shard: shard, lease: lease, holding: ctx, kept: kept}
		e.takeOver(ctx, t)
		e.Metrics.ShardMove(metrics.Takeover, time.Since(began))
		<-ctx.Done()
		began = time.Now()
		e.drain(t)
		e.Metrics.ShardMove(metrics.Drain, time.Since(began))
	}
	e.watcher.Hide(shard)
}

// takeOver begins to handle the objects of a shard, as after a start.
func (e *Engine) takeOver(ctx context.Context, t *tenure) {
	e.joinRollouts(ctx, t)
	handled := slices.DeleteFunc(e.resources.all(), (*resource).isObservedOnly)
	for _, r := range handled {
		for _, snapshot := range e.objectsIn(r, t.shard) {
			e.whenFree(r.Key(snapshot), (*objectState).reopen, func(a *abandoned) { a.reopened = true })
		}
	}
	e.tenures.put(t) // from here on, passes own the states
	q := e.currentQueue()
	for _, r := range handled {
		for _, snapshot := range e.objectsIn(r, t.shard) { // also those that a watch has shown meanwhile
			key := r.Key(snapshot)
			if len(r.events) > 0 { // what the list has shown was not for this replica yet
				e.backlog.Push(key, object.WatchEvent{Snapshot: snapshot})
			}
			if q != nil {
				q.AddInitial(key)
			}
		}
	}
}

// objectsIn returns the known objects of a resource that are in a shard.
func (e *Engine) objectsIn(r *resource, shard int) []*object.Snapshot {
	return slices.DeleteFunc(r.Objects(), func(snapshot *object.Snapshot) bool {
		return e.Division.Of(snapshot.GetNamespace(), snapshot.GetUID()) != shard
	})
}

const (
	// minDrainPolling and maxDrainPolling limit the interval of looking whether a shard can be given up. It looks at all objects,
	// so the interval grows.
	minDrainPolling, maxDrainPolling = 50 * time.Millisecond, time.Second
	// leavePolling is the interval of looking whether the timers of an object have ended.
	leavePolling = 100 * time.Millisecond
)

// drain ends the work on the objects of a shard, and waits for that.
func (e *Engine) drain(t *tenure) {
	// What was taken in before is a part of the work. Afterwards, no object begins to be handled.
	e.tenures.awaitEvents()

	late := time.After(e.Settings.Execution.GracePeriod + DrainDelay)
	pause := minDrainPolling
	for !e.exiting.Load() && !e.endTenure(t) {
		select {
		case <-late:
			e.reportUndrained(t)
		default:
		}
		sleep.For(context.Background(), pause)
		pause = min(2*pause, maxDrainPolling)
	}
	if e.exiting.Load() { // all shards end together
		<-e.over
	}
	t.mu.Lock()
	t.endTerm()
	t.mu.Unlock()
}

// DrainDelay is how long after the grace period a handler that ignores its context is reported.
const DrainDelay = 2 * time.Second

// endTenure ends a tenure if nothing of its shard is left. Otherwise, it requests passes over the objects, which leave
// them.
func (e *Engine) endTenure(t *tenure) (ended bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := e.keysIn(t)
	q := e.currentQueue()
	for _, key := range left {
		busy, next := q.Of(key)
		if q != nil && !busy && (next.IsZero() || t.asked != q) { // a retry after a failure has its time
			q.Add(key)
		}
		if q == nil && e.detached[key] == nil {
			t.leave(e.objects.remove(key, t.reason()))
		}
	}
	t.asked = q
	if len(left) > 0 || t.leaving.has((*daemons.Group).IsActive) {
		return false
	}
	e.tenures.remove(t)
	return true
}

// keysIn returns the objects of a shard that this replica still handles. It is called with the mutex.
func (e *Engine) keysIn(t *tenure) (keys []object.Key) {
	for key, p := range e.detached {
		if p.term.tenure == t {
			keys = append(keys, key)
		}
	}
	for _, r := range e.resources.all() {
		for _, key := range e.objects.in(object.StreamKey{Resource: r.Name}) {
			if snapshot := r.Cached(key.NamespacedName); snapshot != nil && e.tenures.ofSnapshot(snapshot) == t && e.detached[key] == nil {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// reportUndrained logs which objects keep a shard.
func (e *Engine) reportUndrained(t *tenure) {
	e.mu.Lock()
	keys := e.keysIn(t)
	e.mu.Unlock()
	const message = "Another replica should handle the objects of a shard, but handlers have not returned although they were canceled. This replica keeps the shard until they return, or until its process ends."
	e.Logger.Error(nil, message, "shard", t.shard, "objects", len(keys))
	for _, key := range keys[:min(len(keys), maxReportedKeys)] {
		e.logUnreturned(key, "The handler keeps the shard of its object from another replica.", "A filter, a storage, or a daemon keeps the shard of its object from another replica.")
	}
}

// maxReportedKeys limits the lines about a shard.
const maxReportedKeys = 10

// reason returns why daemons and timers must stop.
func (t *tenure) reason() stop.Reason {
	if t.isLost() {
		return stop.LeadershipLost
	}
	return stop.Moved
}

// leave keeps the daemons and timers of an object that is forgotten, until they have ended.
func (t *tenure) leave(b *background) {
	if b == nil {
		return
	}
	if t.isLost() {
		b.group.Cancel(errLost, stop.LeadershipLost)
	}
	t.leaving.add(b.group)
}

// termOf returns the term in which an object can be handled. It returns nil if another
// replica handles the object, and nothing is left of it here.
func (w *workers) termOf(r *resource, key object.Key) *term {
	e := w.engine
	if !e.isSharded() {
		return &w.term
	}
	snapshot := r.Cached(key.NamespacedName)
	if snapshot == nil {
		return &w.term // to forget what is known of it
	}
	if t := e.tenures.ofSnapshot(snapshot); t != nil {
		return t.termIn(w)
	}
	if e.objects.has(key) {
		known := e.objects.of(key).writes.UID()
		if known != "" && known != snapshot.GetUID() {
			return &w.term // another object, in another shard, has replaced it
		}
	}
	return nil
}

// leaveShard ends the work on an object that another replica must handle.
func (p *pass) leaveShard(ctx context.Context, cached *object.Snapshot) (next nextPass, err error) {
	p.isOpen = never
	e := p.engine
	_ = e.backlog.Take(p.key) // the next holder calls event handlers for the object as it is then
	b := p.object.background
	isLate := p.term.calls.Err() != nil // the grace period is over
	if !p.term.tenure.isLost() {
		if b != nil {
			if isLate {
				b.group.Cancel(errLeaving, stop.Moved)
			} else {
				b.group.Stop(stop.Moved)
			}
			p.object.writes.Add(b.takeEdits()...)
		}
		left, err := p.writeLast(ctx, cached)
		switch {
		case err != nil && isLate && p.object.failures >= maxLastFailures:
			p.report.Log.Error(err, "What handlers have done to the object cannot be written before another replica takes over; that one calls them again.")
		case err != nil || left.Needed:
			return left, err
		case b != nil && b.group.IsActive():
			return in(leavePolling), nil
		}
	}
	e.converger.Forget(p.object.writes.UID())
	e.spans.endCycle(p.key, "moved")
	p.term.tenure.leave(e.objects.remove(p.key, p.term.tenure.reason()))
	return nextPass{}, nil
}

// maxLastFailures is how many times writing the last outcomes can fail after the grace period.
const maxLastFailures = 5

// writeLast writes what is left of the work on an object.
func (p *pass) writeLast(ctx context.Context, cached *object.Snapshot) (next nextPass, err error) {
	if !p.object.writes.HasPending() && !p.object.writes.HasEdits() {
		return nextPass{}, nil
	}
	freshness, err := p.session.Refresh(ctx, cached)
	if err != nil || !freshness.Fresh {
		return in(max(freshness.WaitFor, leavePolling)), err
	}
	flushed, err := p.session.Flush(ctx)
	if err != nil {
		return nextPass{}, err
	}
	p.finishCycle(flushed)
	if flushed.Gone || !p.object.writes.HasEdits() {
		return nextPass{}, nil
	}
	_, err = p.session.Write(ctx, write.Update{})
	return nextPass{}, err
}

// groups contains the daemons and timers of objects. It is safe for concurrent use.
type groups struct {
	mu  sync.Mutex
	all []*daemons.Group
}

func (g *groups) add(group *daemons.Group) {
	if !group.IsActive() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, group)
}

// has reports whether the function still holds for any of the groups. It forgets the others.
func (g *groups) has(still func(*daemons.Group) bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = slices.DeleteFunc(g.all, func(group *daemons.Group) bool { return !still(group) })
	return len(g.all) > 0
}

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/indexing"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// forgetPolling is the interval for checking whether the last handler of a resource that is
// no longer watched has returned.
const forgetPolling = 200 * time.Millisecond

// consumer implements watch.Consumer for the engine.
type consumer struct{ engine *Engine }

var _ watch.Consumer = consumer{}

// NeedsPatch reports whether a resource has handlers that write to its objects: at least a
// record, or the finalizer.
func (c consumer) NeedsPatch(found discovery.SelectedResource) bool {
	return slices.ContainsFunc(c.handlersOf(found), func(d *handler.Declaration) bool {
		return d.Kind.IsChange() || d.Kind.IsBackground() || d.Kind.IsTriggered()
	})
}

func (c consumer) handlersOf(found discovery.SelectedResource) registry.Handlers {
	return c.engine.Handlers.Where(func(d *handler.Declaration) bool { return slices.Contains(found.Selectors, d.Selector) })
}

// SetUp prepares a resource and the handlers whose selectors have found it.
func (c consumer) SetUp(ctx context.Context, found discovery.SelectedResource) (*watch.Resource, error) {
	e := c.engine
	handlers := c.handlersOf(found)
	if err := handlers.Conflicts(); err != nil {
		return nil, fmt.Errorf("%s: %w", found, err)
	}
	api, err := kube.New(e.REST, e.HTTP, found.Resource, e.Settings)
	if err != nil {
		return nil, err
	}
	r := newResource(watch.NewResource(found, api), handlers)
	r.Handlers.Unserved = e.Handlers.Where(func(d *handler.Declaration) bool {
		return d.HoldsDeletion() && slices.Contains(r.Resource.Unserved(), d.Selector)
	})
	r.runsCode = r.runsCode || slices.ContainsFunc(r.Handlers.Unserved, (*handler.Declaration).RunsCode)
	if err := r.checkConditions(ctx, e); err != nil {
		return nil, err
	}
	r.indexer = c.newIndexer(r, handlers)
	r.FillsIndices = r.indexer != nil
	c.setUpChildren(r, found)
	r.IsWhole = r.indexer != nil || r.asChild != nil
	e.resources.put(r)
	e.beginSeries(r)
	e.startRollouts(ctx, r)
	r.checkFields(ctx, e)
	if err := r.Changing.CheckOrder(); err != nil && e.reported.First(r.Name+": "+err.Error()) {
		e.Logger.Error(err, "Handlers wait for handlers that are not called for this resource; they do not wait there.", "resource", r.Name)
	}
	return r.Resource, nil
}

// Index passes a watch event to the indices.
func (c consumer) Index(ctx context.Context, watched *watch.Resource, event object.WatchEvent) {
	r := c.engine.resources.get(watched.Name)
	switch {
	case r.indexer == nil:
	case event.Type == apiwatch.Deleted || event.Type == object.Vanished:
		r.indexer.Remove(watched.Key(event.Snapshot))
	default:
		r.indexer.Update(ctx, watched.Key(event.Snapshot), event.Snapshot.Body())
	}
}

// Observe passes a watch event to the index of children, the backlog, and the queue, in this order.
func (c consumer) Observe(_ context.Context, watched *watch.Resource, event object.WatchEvent) {
	e := c.engine
	r := c.engine.resources.get(watched.Name)
	key := watched.Key(event.Snapshot)
	if event.Type == object.Vanished {
		c.observeVanished(r, key, event)
		return
	}
	c.observeReturn(r, key, event)
	if e.Recorder != nil {
		e.Recorder.Event(r.Resource.Resource, r.Declared, event)
	}
	if kind := r.asChild; kind != nil {
		e.children.Observe(kind, event)
	}
	if e.isSharded() {
		e.tenures.observing.RLock()
		defer e.tenures.observing.RUnlock()
		if !c.isExpected(key, event) {
			return
		}
	}
	if event.Type == "" && !r.isObservedOnly() {
		e.objects.of(key).initial.Store(true)
	}
	if r.isAttended {
		e.attentions.observe(key, event.Snapshot)
	}
	if r.isObservedOnly() {
		if event.Type == apiwatch.Deleted {
			e.objects.remove(key, stop.Deleted) // no pass does it
		}
		return
	}
	if len(r.events) > 0 {
		e.backlog.Push(key, event)
	}
	if event.Type == apiwatch.Deleted {
		if r.storesState() && e.leading.Load() { // otherwise, the leader does it
			e.erasures.Add(key, event.Snapshot)
		}
		c.forgetIfIdle(key)
	}
	if q := e.currentQueue(); q != nil && event.Type == "" {
		q.AddInitial(key)
		return
	}
	e.enqueue(key)
}

// isExpected reports whether an event is for this replica. What is known of an object of a shard that is
// being given up can still change, but no object begins to be handled.
func (c consumer) isExpected(key object.Key, event object.WatchEvent) bool {
	t := c.engine.tenures.ofSnapshot(event.Snapshot)
	return t != nil && (!t.isEnding() || c.engine.objects.has(key))
}

// BeginAnew lets the next pass over an object forget what is known of its versions.
func (c consumer) BeginAnew(_ *watch.Resource, key object.Key) {
	if c.engine.objects.has(key) {
		c.engine.objects.of(key).anew.Store(true)
		c.engine.enqueue(key)
	}
}

// Forget removes everything about objects that are no longer watched. For an entire
// resource, it waits until the last handler has returned: objects that are now watched in
// another version must not be handled twice at the same time.
func (c consumer) Forget(ctx context.Context, watched *watch.Resource, stream object.StreamKey) {
	e := c.engine
	r := c.engine.resources.get(watched.Name)
	if r.indexer != nil {
		r.indexer.RemoveFunc(stream.Has)
	}
	if kind := r.asChild; kind != nil {
		e.children.Forget(kind, stream.Namespace)
	}
	e.objects.forgetVanished(stream)

	// Passes do the rest, so that it does not interfere with running passes. Without workers, there are no
	// passes.
	e.mu.Lock()
	q := e.currentQueue()
	for _, key := range e.objects.in(stream) {
		if q == nil {
			e.objects.remove(key, stop.Mismatch)
			continue
		}
		q.Add(key)
	}
	if q == nil {
		e.backlog.Drop(stream)
	}
	e.mu.Unlock()

	if stream.Namespace != "" {
		return
	}
	if r.indexer != nil {
		r.indexer.Close()
	}
	_ = wait.PollUntilContextCancel(ctx, forgetPolling, true, func(context.Context) (bool, error) {
		return !r.leaving.has((*daemons.Group).HasRunningDaemons) && len(e.objects.in(stream)) == 0, nil
	})
}

// ObserveChild passes a version of a child to the converger.
func (c consumer) ObserveChild(child *unstructured.Unstructured, gone bool) {
	if c.canBeHandled(child) {
		c.engine.converger.ObserveChild(child, gone)
	}
}

// canBeHandled reports whether this replica can handle the parent of a child: it holds the shard of an owner, or
// the child does not name its owners.
func (c consumer) canBeHandled(child *unstructured.Unstructured) bool {
	owners := child.GetOwnerReferences()
	return !c.engine.isSharded() || len(owners) == 0 || slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool {
		return c.isOwnerHere(child.GetNamespace(), owner.UID)
	})
}

// isOwnerHere reports whether this replica can handle an owner of a child in a namespace. The owner is there, or in none.
func (c consumer) isOwnerHere(namespace string, owner types.UID) bool {
	return c.engine.watcher.Shows(namespace, owner) || c.engine.watcher.Shows("", owner)
}

// LeaveChildren makes the converger forget the children of objects that another replica handles.
func (c consumer) LeaveChildren() { c.engine.converger.LeaveChildren(c.isOwnerHere) }

// ReplaceChildren passes the children that a watch covers to the converger.
func (c consumer) ReplaceChildren(covers func(convergence.ChildKey) bool, all []*unstructured.Unstructured, version string, another bool) {
	all = slices.DeleteFunc(all, func(child *unstructured.Unstructured) bool { return !c.canBeHandled(child) })
	c.engine.converger.ReplaceChildren(covers, all, version, another)
}

// forgetIfIdle removes the state of an object that is gone while there are no workers and
// no passes. A replica can be on standby for the lifetime of its process.
func (c consumer) forgetIfIdle(key object.Key) {
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.currentQueue() == nil {
		e.objects.remove(key, stop.Deleted)
	}
}

// claimIndices reserves the indices for this operator until they are released.
func (e *Engine) claimIndices() (release func(), err error) {
	claimed := map[handler.Table]struct{}{}
	release = func() {
		for table := range claimed {
			table.Release()
		}
	}
	var problems []error
	for _, d := range e.Handlers.OfKind(handler.OnIndex) {
		if _, ours := claimed[d.Table]; ours {
			continue
		}
		if err := d.Table.Claim(); err != nil {
			problems = append(problems, fmt.Errorf("%s: the index %q: %w", d.DeclaredAt, d.ID, err))
			continue
		}
		claimed[d.Table] = struct{}{}
	}
	if err := errors.Join(problems...); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// newIndexer returns the indexer of a resource, or nil if there are no indices.
func (c consumer) newIndexer(r *resource, handlers registry.Handlers) *indexing.Indexer {
	e := c.engine
	indices := handlers.OfKind(handler.OnIndex)
	if len(indices) == 0 {
		return nil
	}
	return indexing.New(indexing.Config{
		Handlers: indices,
		Backoff:  e.Settings.Execution.Backoff,
		Prepare: func(ctx context.Context, body *object.Body, d *handler.Declaration) (context.Context, handler.CallContext) {
			key := object.Key{Resource: r.Name, NamespacedName: types.NamespacedName{Namespace: body.Namespace(), Name: body.Name()}}
			ctx, logger := e.callContext(ctx, r, key, func() *object.Body { return body }, d)
			uid := body.UID()
			return ctx, handler.CallContext{
				Body: body, Resource: &r.Resource.Resource, Logger: logger, Client: e.Client,
				Memo: func() *memo.Values { return e.objects.of(key).memosOf(uid, e.Memos) },
			}
		},
		Misfit:  e.objects.recordMisfit,
		Measure: func(d *handler.Declaration, o call.Outcome) { e.measure(r, d, o) },
		Current: func(key object.Key) *object.Body {
			if snapshot := r.Cached(key.NamespacedName); snapshot != nil {
				return snapshot.Body()
			}
			return nil
		},
	})
}

// stopIndexing stops the retries of indexing functions.
func (e *Engine) stopIndexing() {
	for _, r := range e.resources.all() {
		if r.indexer != nil {
			r.indexer.Close()
		}
	}
}

// setUpChildren prepares for a resource whose objects are parents or children.
func (c consumer) setUpChildren(r *resource, found discovery.SelectedResource) {
	index := c.engine.children
	for _, d := range r.Declared {
		if len(d.ChildSelectors()) == 0 {
			continue
		}
		if d.ChildLabel != "" {
			index.IndexLabel(d.ChildLabel)
		} else {
			index.IndexOwners(r.GVK().GroupKind())
		}
	}
	hasChildren := slices.ContainsFunc(c.engine.Handlers, func(d *handler.Declaration) bool {
		return slices.ContainsFunc(found.Selectors, d.LooksAt)
	})
	if hasChildren {
		r.asChild = &triggers.ChildKind{Resource: r.Resource.Resource, Selectors: found.Selectors, Objects: r.Objects}
		index.AddKind(r.asChild)
	}
}

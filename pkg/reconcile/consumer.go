package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
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
	return slices.ContainsFunc(c.handlersOf(found), func(d *handler.Declaration) bool { return d.Kind.IsChange() || d.Kind.IsBackground() })
}

func (c consumer) handlersOf(found discovery.SelectedResource) registry.Handlers {
	return c.engine.Handlers.Where(func(d *handler.Declaration) bool { return slices.Contains(found.Selectors, d.Selector) })
}

// SetUp prepares a resource and the handlers whose selectors have found it.
func (c consumer) SetUp(found discovery.SelectedResource) (*watch.Resource, error) {
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
	if err := r.checkConditions(e); err != nil {
		return nil, err
	}
	r.indexer = c.newIndexer(r, handlers)
	r.FillsIndices = r.indexer != nil
	e.resources.put(r)
	return r.Resource, nil
}

// Observe passes a watch event to the indices, the backlog, and the queue, in this order.
func (c consumer) Observe(ctx context.Context, watched *watch.Resource, event object.WatchEvent) {
	e, r, key := c.engine, c.engine.resources.get(watched.Name), watched.Key(event.Snapshot)
	if e.Recorder != nil {
		e.Recorder.Event(r.Resource.Resource, r.declared, event)
	}
	if event.Type == "" {
		e.objects.of(key).initial.Store(true)
	}
	if r.indexer != nil {
		c.index(ctx, r, key, event)
	}
	if r.isIndexedOnly() {
		return
	}
	if len(r.events) > 0 {
		e.backlog.Push(key, event)
	}
	if event.Type == apiwatch.Deleted {
		c.forgetIfIdle(key)
	}
	if q := e.currentQueue(); q != nil && event.Type == "" {
		q.AddInitial(key)
		return
	}
	e.enqueue(key)
}

// Forget removes everything about objects that are no longer watched. For an entire
// resource, it waits until the last handler has returned: objects that are now watched in
// another version must not be handled twice at the same time.
func (c consumer) Forget(ctx context.Context, watched *watch.Resource, stream object.StreamKey) {
	e, r := c.engine, c.engine.resources.get(watched.Name)
	c.forgetStream(r, stream)
	if stream.Namespace != "" {
		return
	}
	if r.indexer != nil {
		r.indexer.Close()
	}
	_ = wait.PollUntilContextCancel(ctx, forgetPolling, true, func(context.Context) (bool, error) {
		return !r.leaving.areRunning() && len(e.objects.in(stream)) == 0, nil
	})
}

// forgetStream removes the objects of a stream from the indices immediately. Passes do the
// rest, so that it does not interfere with running passes; without workers, there are no
// passes.
func (c consumer) forgetStream(r *resource, stream object.StreamKey) {
	e := c.engine
	if r.indexer != nil {
		r.indexer.RemoveFunc(stream.Has)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, key := range e.objects.in(stream) {
		if e.queue == nil {
			e.objects.remove(key, handler.StopMismatch)
			continue
		}
		e.queue.Add(key)
	}
	if e.queue == nil {
		e.backlog.Drop(stream)
	}
}

// forgetIfIdle removes the state of an object that is gone while there are no workers and
// no passes. A replica can be on standby for the lifetime of its process.
func (c consumer) forgetIfIdle(key object.Key) {
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queue == nil {
		e.objects.remove(key, handler.StopDeleted)
	}
}

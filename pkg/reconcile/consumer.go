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
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// forgetPolling is how often the handlers of a resource that is not served anymore are
// looked at, until the last one has returned.
const forgetPolling = 200 * time.Millisecond

// consumer is the engine as the watcher sees it.
type consumer struct{ engine *Engine }

var _ watch.Consumer = consumer{}

// SetUp prepares a resource with those handlers whose selectors have found it.
func (c consumer) SetUp(found discovery.SelectedResource) (*watch.Resource, error) {
	e := c.engine
	handlers := e.Handlers.Where(func(d *handler.Declaration) bool { return slices.Contains(found.Selectors, d.Selector) })
	if err := handlers.Conflicts(); err != nil {
		return nil, fmt.Errorf("%s: %w", found, err)
	}
	api, err := kube.New(e.REST, e.HTTP, found.Resource, e.Settings)
	if err != nil {
		return nil, err
	}
	r := newResource(watch.NewResource(found, api), handlers)
	r.indexer = c.newIndexer(r, handlers)
	r.FillsIndices = r.indexer != nil
	e.resources.put(r)
	return r.Resource, nil
}

// Observe takes a watch event: first the indices, then the backlog, then the queue.
func (c consumer) Observe(ctx context.Context, watched *watch.Resource, event object.WatchEvent) {
	e, r, key := c.engine, c.engine.resources.get(watched.Name), watched.Key(event.Snapshot)
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
	e.enqueue(key)
}

// Forget forgets everything of objects that are not watched anymore. Of a whole
// resource, it waits until the last handler has returned: objects that are served in
// another version by now must not be handled twice at the same time.
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

// forgetStream removes the objects of a stream from the indices at once. The rest is
// what passes do, so that none is in the way of one that is running; or there are no
// workers, and no passes.
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

// forgetIfIdle forgets an object that is gone while there are no workers: no pass would
// do it. A replica can stand by for as long as the process lives.
func (c consumer) forgetIfIdle(key object.Key) {
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queue == nil {
		e.objects.remove(key, handler.StopDeleted)
	}
}

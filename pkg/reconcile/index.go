package reconcile

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/reconcile/indexing"
)

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
	e, indices := c.engine, handlers.OfKind(handler.OnIndex)
	if len(indices) == 0 {
		return nil
	}
	return indexing.New(indexing.Config{
		Handlers: indices,
		Backoff:  e.Settings.Execution.Backoff,
		Prepare: func(ctx context.Context, body *object.Body, d *handler.Declaration) (context.Context, handler.CallContext) {
			return c.prepareIndexing(ctx, r, body, d)
		},
		Misfit:  e.objects.noteMisfit,
		Measure: func(d *handler.Declaration, o execution.Outcome) { e.measure(r, d, o) },
		Current: func(key object.Key) *object.Body {
			if snapshot := r.Cached(key.NamespacedName); snapshot != nil {
				return snapshot.Body()
			}
			return nil
		},
	})
}

// prepareIndexing returns the context and the arguments for one call of an indexing function.
func (c consumer) prepareIndexing(ctx context.Context, r *resource, body *object.Body, d *handler.Declaration) (context.Context, handler.CallContext) {
	e, key := c.engine, object.Key{Resource: r.Name, NamespacedName: types.NamespacedName{Namespace: body.Namespace(), Name: body.Name()}}
	ctx, logger := e.callContext(ctx, r, key, func() *object.Body { return body }, d)
	uid := body.UID()
	return ctx, handler.CallContext{
		Body: body, Resource: &r.Resource.Resource, Logger: logger, Client: e.Client,
		Memo: func() *memo.Values { return e.objects.of(key).memosOf(uid, e.Memos) },
	}
}

// index updates the indices after an event of an object.
func (c consumer) index(ctx context.Context, r *resource, key object.Key, event object.WatchEvent) {
	if event.Type != apiwatch.Deleted {
		r.indexer.Update(ctx, key, event.Snapshot.Body())
		return
	}
	r.indexer.Remove(key)
	if r.isIndexedOnly() {
		c.engine.objects.remove(key, handler.StopDeleted) // no pass does it
	}
}

// stopIndexing stops the retries of indexing functions.
func (e *Engine) stopIndexing() {
	for _, r := range e.resources.all() {
		if r.indexer != nil {
			r.indexer.Close()
		}
	}
}

package reconcile

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/reconcile/indexing"
)

// claim makes the indices those of this operator, until they are given back.
func (e *Engine) claim() (giveBack func(), err error) {
	claimed := map[handler.Table]struct{}{}
	giveBack = func() {
		for table := range claimed {
			table.Release()
		}
	}
	var problems []error
	for _, d := range e.Handlers.Where(indexes) {
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
		giveBack()
		return nil, err
	}
	return giveBack, nil
}

func indexes(d *handler.Declaration) bool { return d.Kind == handler.OnIndex }

// newIndexer makes what fills the indices from a resource; nil if there are none.
func (e *Engine) newIndexer(s *served, handlers registry.Handlers) *indexing.Indexer {
	indices := handlers.Where(indexes)
	if len(indices) == 0 {
		return nil
	}
	return indexing.New(indexing.Config{
		Handlers: indices,
		Backoff:  e.Settings.Execution.Backoff,
		Prepare: func(ctx context.Context, body *object.Body, d *handler.Declaration) (context.Context, handler.CallContext) {
			return e.indexed(ctx, s, body, d)
		},
		Measure: func(d *handler.Declaration, o execution.Outcome) { e.measure(s, d, o) },
		Current: func(owner object.Key) *object.Body {
			if snapshot := s.cached(owner.NamespacedName); snapshot != nil {
				return snapshot.Body()
			}
			return nil
		},
	})
}

// indexed makes the context and the subject of one call of an indexing function.
func (e *Engine) indexed(ctx context.Context, s *served, body *object.Body, d *handler.Declaration) (context.Context, handler.CallContext) {
	key := object.Key{Resource: s.name, NamespacedName: types.NamespacedName{Namespace: body.Namespace(), Name: body.Name()}}
	about := About{Body: func() *object.Body { return body }, Resource: s.Resource}
	about.Logger = e.told.Logger(e.logger(key), about.Body, "handler", d.ID)
	subject := handler.CallContext{Body: body, Resource: &s.Resource, Logger: about.Logger, Client: e.Client}
	uid := body.UID()
	subject.Memo = func() *memo.Values { return e.memories.of(key).memos(uid, e.Memos) }
	return e.Context(ctx, about), subject
}

// index brings the indices up to date with what has happened to an object.
func (e *Engine) index(ctx context.Context, s *served, key object.Key, o object.WatchEvent) {
	if o.Type != watch.Deleted {
		s.indexer.Update(ctx, key, o.Snapshot.Body())
		return
	}
	s.indexer.Remove(key)
	if s.indexed() {
		e.memories.forget(key) // there are no passes that would do it
	}
}

// indexed tells whether the resource is there for its indices alone.
func (s *served) indexed() bool {
	return len(s.changing) == 0 && len(s.events) == 0 && len(s.background) == 0
}

// stopIndexing ends the retries of indexing functions.
func (e *Engine) stopIndexing() {
	for _, s := range e.served.all() {
		if s.indexer != nil {
			s.indexer.Close()
		}
	}
}

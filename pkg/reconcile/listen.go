package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// listener is the only one on an informer, so that what it does is in order:
// first the indices, then the event line, then the queue.
func (e *Engine) listener(ctx context.Context, s *served) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(item any, listed bool) {
			kind := watch.Added
			if listed {
				kind = "" // it was there before
				e.memories.of(s.key(snapshotOf(item))).initial.Store(true)
			}
			e.happened(ctx, s, object.WatchEvent{Type: kind, Snapshot: snapshotOf(item)})
		},
		UpdateFunc: func(before, after any) {
			old, now := snapshotOf(before), snapshotOf(after)
			switch {
			case old.GetUID() != now.GetUID():
				// Deleted and re-created while the watch was interrupted.
				e.happened(ctx, s, object.WatchEvent{Type: watch.Deleted, Snapshot: old})
				e.happened(ctx, s, object.WatchEvent{Type: watch.Added, Snapshot: now})
			case old.GetResourceVersion() != now.GetResourceVersion():
				e.happened(ctx, s, object.WatchEvent{Type: watch.Modified, Snapshot: now})
			}
		},
		DeleteFunc: func(item any) {
			if unknown, ok := item.(cache.DeletedFinalStateUnknown); ok {
				item = unknown.Obj // the deletion itself was missed
			}
			if last := snapshotOf(item); last != nil {
				e.happened(ctx, s, object.WatchEvent{Type: watch.Deleted, Snapshot: last})
			}
		},
	}
}

func (e *Engine) happened(ctx context.Context, s *served, o object.WatchEvent) {
	key := s.key(o.Snapshot)
	if s.indexer != nil {
		e.index(ctx, s, key, o)
	}
	if s.indexed() {
		return
	}
	if len(s.events) > 0 {
		e.lines.push(key, o)
	}
	if o.Type == watch.Deleted {
		e.dismiss(key)
	}
	e.enqueue(key)
}

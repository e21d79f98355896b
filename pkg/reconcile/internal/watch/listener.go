package watch

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Listener converts the notifications of an informer to events of objects. It is the only
// listener of the informer, so that the events of an object are in order.
func Listener(ctx context.Context, r *Resource, c Consumer) cache.ResourceEventHandler {
	observe := func(kind watch.EventType, snapshot *object.Snapshot) {
		c.Observe(ctx, r, object.WatchEvent{Type: kind, Snapshot: snapshot})
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(item any, listed bool) {
			kind := watch.Added
			if listed {
				kind = "" // from the initial list
			}
			observe(kind, snapshotOf(item))
		},
		UpdateFunc: func(before, after any) {
			old, now := snapshotOf(before), snapshotOf(after)
			switch {
			case old.GetUID() != now.GetUID():
				// Deleted and created again while the watch was interrupted.
				observe(watch.Deleted, old)
				observe(watch.Added, now)
			case old.GetResourceVersion() != now.GetResourceVersion():
				observe(watch.Modified, now)
			}
		},
		DeleteFunc: func(item any) {
			if unknown, ok := item.(cache.DeletedFinalStateUnknown); ok {
				item = unknown.Obj // the watch missed the deletion
			}
			if last := snapshotOf(item); last != nil {
				observe(watch.Deleted, last)
			}
		},
	}
}

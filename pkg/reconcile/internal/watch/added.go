package watch

import (
	"slices"
	"sync"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// Added has the selectors that became known after the start. It is safe for concurrent use.
type Added struct {
	changed signal

	mu        sync.Mutex
	selectors []selector.Selector
}

// Add makes the watcher watch the resources of one more selector until it stops. It can be
// called at any time, and does not wait. A resource that the operator watches already stays as
// it is.
func (a *Added) Add(sel selector.Selector) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.selectors, sel) {
		a.selectors = append(a.selectors, sel)
		a.changed.send()
	}
}

// resolve finds the resources of the declared selectors, and of those that were added. A
// resource of both is found by the declared ones alone, so that it is the same as before.
func (a *Added) resolve(declared []selector.Selector, in discovery.Snapshot) discovery.Resolution {
	a.mu.Lock()
	extra := slices.Clone(a.selectors)
	a.mu.Unlock()
	all := slices.Clone(declared)
	for _, sel := range extra {
		if !slices.Contains(all, sel) {
			all = append(all, sel)
		}
	}
	resolution := discovery.Resolve(all, in)
	for i, found := range resolution.Resources {
		if slices.ContainsFunc(found.Selectors, func(sel selector.Selector) bool { return slices.Contains(declared, sel) }) {
			resolution.Resources[i].Selectors = slices.DeleteFunc(slices.Clone(found.Selectors), func(sel selector.Selector) bool {
				return !slices.Contains(declared, sel)
			})
		}
	}
	return resolution
}

// awaitList tells the consumer when a stream has its initial objects.
func awaitList(c Consumer, r *Resource, s *Stream) {
	select {
	case <-s.listed():
		c.Listed(r)
	case <-s.stopped:
	}
}

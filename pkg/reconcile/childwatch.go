package reconcile

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/children"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// setUpChildren prepares for a resource whose objects are parents or children.
func (c consumer) setUpChildren(r *resource, found discovery.SelectedResource) {
	index := c.engine.children
	for _, d := range r.triggered {
		if d.ChildLabel != "" {
			index.IndexLabel(d.ChildLabel)
		} else {
			index.IndexOwners(r.GVK().GroupKind())
		}
	}
	isDeclared := slices.ContainsFunc(c.engine.Handlers, func(d *handler.Declaration) bool {
		return d.Kind == handler.OnChild && slices.Contains(found.Selectors, d.Children)
	})
	if isDeclared || c.engine.childKinds.has(r.GVK().GroupKind()) {
		childWatcher{c.engine}.addObjects(r, found.Selectors)
	}
}

// addObjects adds the objects of a resource to the children.
func (w childWatcher) addObjects(r *resource, selectors []selector.Selector) {
	kind := &children.Kind{Resource: r.Resource.Resource, Selectors: selectors, Objects: r.Objects}
	if r.asChild.CompareAndSwap(nil, kind) {
		w.engine.children.AddKind(kind)
	}
}

// childKinds are the kinds of children that became known after the start. It is safe for
// concurrent use.
type childKinds struct {
	mu sync.Mutex
	// waiting are the functions to call when a kind is listed.
	waiting map[schema.GroupKind][]func()
}

func (k *childKinds) has(kind schema.GroupKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, known := k.waiting[kind]
	return known
}

func (k *childKinds) add(kind schema.GroupKind, listed func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting == nil {
		k.waiting = map[schema.GroupKind][]func(){}
	}
	k.waiting[kind] = append(k.waiting[kind], listed)
}

// take returns the functions of a kind, and forgets them.
func (k *childKinds) take(kind schema.GroupKind) []func() {
	k.mu.Lock()
	defer k.mu.Unlock()
	taken := k.waiting[kind]
	if taken != nil {
		k.waiting[kind] = nil
	}
	return taken
}

// childWatcher implements children.Watcher.
type childWatcher struct{ engine *Engine }

var _ children.Watcher = childWatcher{}

// Watch implements children.Watcher.
func (w childWatcher) Watch(kind schema.GroupKind, listed func()) {
	w.engine.childKinds.add(kind, listed)
	if r := w.resource(kind); r != nil {
		w.addObjects(r, nil)
	} else {
		w.engine.watcher.Added.Add(selector.By(selector.Fields{Group: groupOrCore(kind.Group), Kind: kind.Kind}))
	}
	w.notify(kind)
}

// groupOrCore returns the group for a selector.
func groupOrCore(group string) string {
	if group == "" {
		return selector.Core
	}
	return group
}

// resource returns the watched resource of a kind, or nil if there is none.
func (w childWatcher) resource(kind schema.GroupKind) *resource {
	for _, r := range w.engine.resources.all() {
		if r.GVK().GroupKind() == kind && len(r.Statuses()) > 0 {
			return r
		}
	}
	return nil
}

// State implements children.Watcher.
func (w childWatcher) State(kind schema.GroupKind) children.WatchState {
	r := w.resource(kind)
	if r == nil {
		return children.WatchState{}
	}
	s := children.WatchState{Kind: r.asChild.Load(), Listed: r.IsListed()}
	for _, status := range r.Statuses() {
		if status.Err != nil {
			s.Err = status.Err
		}
	}
	return s
}

// notify calls the functions that wait for a kind, if the index has all its objects.
func (w childWatcher) notify(kind schema.GroupKind) {
	if state := w.State(kind); state.Kind == nil || !state.Listed {
		return
	}
	for _, listed := range w.engine.childKinds.take(kind) {
		listed()
	}
}

// Listed implements watch.Consumer.
func (c consumer) Listed(watched *watch.Resource) {
	kind := watched.GVK().GroupKind()
	if r := c.engine.resources.get(watched.Name); c.engine.childKinds.has(kind) {
		childWatcher{c.engine}.addObjects(r, nil) // unless it was
	}
	childWatcher{c.engine}.notify(kind)
}

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// orchestrator starts and stops the watches as resources and namespaces come and
// go. All of it is for one goroutine, but for what leaves: that takes the time
// that handlers take, and nobody waits for it but what comes in its place.
type orchestrator struct {
	*Engine
	running sync.WaitGroup
	tracker discovery.Tracker
	pace    discovery.ScanSchedule
	// definitions and namespaces are nil while they are not watched.
	definitions, namespaces *discovery.NameInformer
	warned                  map[string]struct{}
	settled                 bool // the last look has found everything

	wanted []discovery.SelectedResource // by the handlers
	active map[string]*served
	scope  []string // the namespaces that are in the scope now

	mu      sync.Mutex
	leaving map[string]struct{}
}

// apply makes the watches those that are wanted. The errors are about resources
// that cannot be served; the others are.
func (o *orchestrator) apply(ctx context.Context) error {
	o.scope = o.namespacesInScope()
	if o.Scoped != nil {
		o.Scoped(slices.Clone(o.scope))
	}
	for name, s := range o.active {
		i := slices.IndexFunc(o.wanted, func(found discovery.SelectedResource) bool { return found.String() == name })
		if i < 0 || !s.serves(o.wanted[i], o.handlersFor(o.wanted[i])) {
			o.retire(ctx, s)
		}
	}
	var problems []error
	for _, found := range o.wanted {
		problems = append(problems, o.serve(ctx, found))
	}
	return errors.Join(problems...)
}

// serve sees to it that a resource has its watches.
func (o *orchestrator) serve(ctx context.Context, found discovery.SelectedResource) error {
	s := o.active[found.String()]
	if s == nil && o.isLeaving(resourceLeaving(found)) {
		return nil // its turn comes when the one before has gone
	}
	if s == nil {
		var err error
		if s, err = o.setUp(found); err != nil {
			return err
		}
		o.active[s.name] = s
		o.served.put(s)
		o.log(s).Info("A resource is watched.", "handlers", len(s.handlers))
	}
	return o.adjust(ctx, s)
}

// setUp sets a resource up with those handlers whose selectors have found it.
func (e *Engine) setUp(found discovery.SelectedResource) (*served, error) {
	handlers := e.handlersFor(found)
	if err := handlers.Conflicts(); err != nil {
		return nil, fmt.Errorf("%s: %w", found, err)
	}
	api, err := kube.New(e.REST, e.HTTP, found.Resource, e.Settings)
	if err != nil {
		return nil, err
	}
	s := newServed(found.Resource, handlers, api)
	s.indexer = e.newIndexer(s, handlers)
	return s, nil
}

// adjust gives a resource the watches of all namespaces in the scope.
func (o *orchestrator) adjust(ctx context.Context, s *served) error {
	wanted := o.namespacesOf(s)
	for namespace, w := range s.streams.all() {
		if !slices.Contains(wanted, namespace) {
			o.leave(ctx, s, w)
		}
	}
	for _, namespace := range wanted {
		if s.streams.all()[namespace] != nil || o.isLeaving(streamLeaving(s, namespace)) {
			continue
		}
		w, err := o.newStream(ctx, s, namespace)
		if err != nil {
			return err
		}
		o.start(s, w)
	}
	return nil
}

// start begins to watch. Handlers that are called already have to wait until what
// it finds is in the indices.
func (o *orchestrator) start(s *served, w *stream) {
	if s.indexer != nil && o.ready() {
		o.filling.hold(w.listed(), w.left, indexPatience, func() {
			o.log(s).Info("The objects could not be listed in time; handlers are called before these are in the indices.", "namespace", w.namespace)
		})
	}
	s.streams.put(w)
	o.running.Go(w.run)
	o.log(s).V(1).Info("The objects are listed and watched.", "namespace", w.namespace)
}

// handlersFor are those whose selectors have found the resource.
func (e *Engine) handlersFor(found discovery.SelectedResource) registry.Handlers {
	return e.Handlers.Where(func(d *handler.Declaration) bool { return slices.Contains(found.Selectors, d.Selector) })
}

// serves tells whether the resource can go on as it is: whatever else has changed
// in its definition makes no difference to its objects and its handlers.
func (s *served) serves(found discovery.SelectedResource, handlers registry.Handlers) bool {
	return s.Kind == found.Kind && s.Status == found.Status && s.Namespaced == found.Namespaced && slices.Equal(s.handlers, handlers)
}

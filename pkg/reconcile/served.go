package reconcile

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/indexing"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// served is a resource that the operator serves, with its handlers.
type served struct {
	selector.Resource
	name     string // of the resource, as keys have it
	api      *kube.Client
	changing registry.Handlers
	events   registry.Handlers
	// background are the daemons and timers; idling: one of them wants to know
	// when the object has changed.
	background registry.Handlers
	idling     bool
	indexer    *indexing.Indexer // nil: there are no indices
	// fields are those that handlers watch: they belong to the essence even if
	// they are in the status.
	fields    []object.Path
	handlers  registry.Handlers // all of them
	streams   streams           // none: it is not served any longer
	departing groups
}

func newServed(resource selector.Resource, handlers registry.Handlers, api *kube.Client) *served {
	s := &served{Resource: resource, name: resource.String(), api: api, handlers: handlers}
	s.changing = handlers.Where(func(d *handler.Declaration) bool { return d.Kind.IsChange() })
	s.events = handlers.Where(func(d *handler.Declaration) bool { return d.Kind == handler.OnEvent })
	s.background = handlers.Where(func(d *handler.Declaration) bool { return d.Kind.IsBackground() })
	s.idling = slices.ContainsFunc(s.background, func(d *handler.Declaration) bool { return d.Idle > 0 })
	for _, d := range s.changing {
		if d.Field != nil && !slices.ContainsFunc(s.fields, func(p object.Path) bool { return slices.Equal(p, d.Field) }) {
			s.fields = append(s.fields, d.Field)
		}
	}
	return s
}

func (s *served) key(snapshot *object.Snapshot) object.Key {
	return object.Key{Resource: s.name, NamespacedName: types.NamespacedName{Namespace: snapshot.GetNamespace(), Name: snapshot.GetName()}}
}

// cached is the object as the watch has shown it last; nil if it is not there.
func (s *served) cached(key types.NamespacedName) *object.Snapshot {
	watched := s.streams.of(key.Namespace)
	if watched == nil {
		return nil
	}
	found, _, _ := watched.informer.GetStore().GetByKey(cache.NewObjectName(key.Namespace, key.Name).String())
	return snapshotOf(found)
}

// snapshotOf is what our informers hold: nothing else is ever put into them.
func snapshotOf(item any) *object.Snapshot {
	snapshot, _ := item.(*object.Snapshot)
	return snapshot
}

// all are the objects that the watches have shown.
func (s *served) all() []*object.Snapshot {
	var snapshots []*object.Snapshot
	for _, watched := range s.streams.all() {
		snapshots = append(snapshots, watched.all()...)
	}
	return snapshots
}

// all are the objects that one watch has shown.
func (w *stream) all() []*object.Snapshot {
	var snapshots []*object.Snapshot
	for _, item := range w.informer.GetStore().List() {
		snapshots = append(snapshots, snapshotOf(item))
	}
	return snapshots
}

// servings are all resources that are served, or were. What is not served any
// longer stays here without streams, for the passes that are still to come. It is
// safe for concurrent use; a pass holds on to what it began with.
type servings struct {
	mu     sync.RWMutex
	byName map[string]*served
}

// get finds a resource by its name; nil if it never was served.
func (s *servings) get(name string) *served {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byName[name]
}

// put adds a resource, or replaces the earlier one of its name.
func (s *servings) put(resource *served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[string]*served{}
	}
	s.byName[resource.name] = resource
}

// all are the resources in the order of their names.
func (s *servings) all() []*served {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Values(s.byName), func(a, b *served) int { return strings.Compare(a.name, b.name) })
}

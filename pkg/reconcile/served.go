package reconcile

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/kopf/handler"
	"github.com/kopf-go/kopf/pkg/kopf/object"
	"github.com/kopf-go/kopf/pkg/kopf/registry"
	"github.com/kopf-go/kopf/pkg/kopf/selector"
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
	informers []cache.SharedIndexInformer // one a namespace
	listening []cache.ResourceEventHandlerRegistration
}

func newServed(resource selector.Resource, handlers registry.Handlers, api *kube.Client) *served {
	s := &served{Resource: resource, name: resource.String(), api: api}
	s.changing = handlers.Where(func(d *handler.Declaration) bool { return d.Kind.Changing() })
	s.events = handlers.Where(func(d *handler.Declaration) bool { return d.Kind == handler.OnEvent })
	s.background = handlers.Where(func(d *handler.Declaration) bool { return d.Kind.Background() })
	s.idling = slices.ContainsFunc(s.background, func(d *handler.Declaration) bool { return d.Idle > 0 })
	for _, d := range s.changing {
		if d.Field != nil && !slices.ContainsFunc(s.fields, func(p object.Path) bool { return slices.Equal(p, d.Field) }) {
			s.fields = append(s.fields, d.Field)
		}
	}
	return s
}

func (s *served) key(snapshot *object.Snapshot) Key {
	return Key{s.name, types.NamespacedName{Namespace: snapshot.GetNamespace(), Name: snapshot.GetName()}}
}

// cached is the object as the watch has shown it last; nil if it is not there.
func (s *served) cached(key types.NamespacedName) *object.Snapshot {
	name := cache.NewObjectName(key.Namespace, key.Name).String()
	for _, informer := range s.informers {
		if found, exists, _ := informer.GetStore().GetByKey(name); exists {
			return snapshotOf(found)
		}
	}
	return nil
}

// snapshotOf is what our informers hold: nothing else is ever put into them.
func snapshotOf(item any) *object.Snapshot {
	snapshot, _ := item.(*object.Snapshot)
	return snapshot
}

// all are the objects that the watches have shown.
func (s *served) all() []*object.Snapshot {
	var snapshots []*object.Snapshot
	for _, informer := range s.informers {
		for _, item := range informer.GetStore().List() {
			snapshots = append(snapshots, snapshotOf(item))
		}
	}
	return snapshots
}

// synced tells whether all objects that were there at the beginning are known,
// and in the indices.
func (s *served) synced() []cache.InformerSynced {
	var all []cache.InformerSynced
	for _, listener := range s.listening {
		all = append(all, listener.HasSynced)
	}
	return all
}

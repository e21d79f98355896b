package reconcile

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/kopf/handler"
	"github.com/kopf-go/kopf/pkg/kopf/object"
	"github.com/kopf-go/kopf/pkg/kopf/registry"
	"github.com/kopf-go/kopf/pkg/kopf/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// served is a resource that the operator serves, with its handlers.
type served struct {
	selector.Resource
	name     string // of the resource, as keys have it
	api      *kube.Client
	changing registry.Handlers
	events   registry.Handlers
	// fields are those that handlers watch: they belong to the essence even if
	// they are in the status.
	fields    []object.Path
	informers []cache.SharedIndexInformer // one a namespace
}

func newServed(resource selector.Resource, handlers registry.Handlers, api *kube.Client) *served {
	s := &served{Resource: resource, name: resource.String(), api: api}
	s.changing = handlers.Where(func(d *handler.Declaration) bool { return d.Kind.Changing() })
	s.events = handlers.Where(func(d *handler.Declaration) bool { return d.Kind == handler.OnEvent })
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

// synced tells whether all objects that were there at the beginning are known.
func (s *served) synced() []cache.InformerSynced {
	var all []cache.InformerSynced
	for _, informer := range s.informers {
		all = append(all, informer.HasSynced)
	}
	return all
}

package discovery

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Cluster-scoped resources whose objects determine what is served.
var (
	Namespaces                = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	CustomResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// NameInformer tracks the names of the objects of a cluster-scoped resource, by their
// metadata alone. It is safe for concurrent use.
type NameInformer struct {
	access  *Access
	source  *relist.Source
	pauses  settings.Watching
	changed func()
	history relist.History // only for the reflector
	synced  chan struct{}
	once    sync.Once

	mu       sync.Mutex
	versions map[string]string // by name
}

var (
	_ cache.ReflectorStore         = (*NameInformer)(nil)
	_ cache.ReflectorBookmarkStore = (*NameInformer)(nil)
)

// NewNameInformer returns a NameInformer, which the caller must Run. It calls changed
// for every object that exists at first, is created, changes, or is deleted, and
// report for every error that keeps it from knowing, and with nil when a watch begins. Both functions must not block.
func NewNameInformer(config *rest.Config, client *http.Client, s settings.Settings, resource schema.GroupVersionResource, changed func(), report func(error)) (*NameInformer, error) {
	access, err := NewAccess(config, client, resource)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be watched: %w", resource.Resource, err)
	}
	n := newNames(changed)
	n.access, n.pauses, n.source = access, s.Watching, sourceOf(objects.Resource(resource), s, report)
	return n, nil
}

func newNames(changed func()) *NameInformer {
	return &NameInformer{changed: changed, synced: make(chan struct{}), versions: map[string]string{}}
}

// sourceOf returns the requests for all objects of a resource.
func sourceOf(objects metadata.ResourceInterface, s settings.Settings, report func(error)) *relist.Source {
	reportOutcome := func(ctx context.Context, err error) {
		if ctx.Err() == nil { // it was not stopped
			report(err)
		}
	}
	return &relist.Source{
		Timeout: s.Watching.ServerTimeout,
		ListFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			limited, cancel := context.WithTimeout(ctx, s.Networking.RequestTimeout)
			defer cancel()
			list, err := objects.List(limited, options)
			if err != nil {
				reportOutcome(ctx, err)
			}
			return list, err
		},
		WatchFunc: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			started, err := relist.Limit(ctx, s.Watching.InactivityTimeout, func(ctx context.Context) (watch.Interface, error) {
				return objects.Watch(ctx, options)
			})
			reportOutcome(ctx, err)
			return started, err
		},
	}
}

// CheckAccess asks the API server whether the operator may do what Run does.
func (n *NameInformer) CheckAccess(ctx context.Context) (bool, error) {
	for _, verb := range []string{"list", "watch"} {
		if permitted, err := n.access.Permits(ctx, verb, ""); err != nil || !permitted {
			return false, err
		}
	}
	return true, nil
}

// Run watches until the context is done.
func (n *NameInformer) Run(ctx context.Context) {
	relist.Run(ctx, n.pauses, n.source, &metav1.PartialObjectMetadata{}, n, func(error) bool { return false })
}

// Synced returns a channel that is closed when all initial names are known.
func (n *NameInformer) Synced() <-chan struct{} { return n.synced }

// List returns the sorted names.
func (n *NameInformer) List() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	names := make([]string, 0, len(n.versions))
	for name := range n.versions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Add is called for a new object.
func (n *NameInformer) Add(item any) error { return n.Update(item) }

// Update is called for a new version of an object.
func (n *NameInformer) Update(item any) error {
	object, ok := item.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	n.history.Advance(object.ResourceVersion)
	n.mu.Lock()
	n.versions[object.Name] = object.ResourceVersion
	n.mu.Unlock()
	n.changed()
	return nil
}

// Delete is called with the last version of an object.
func (n *NameInformer) Delete(item any) error {
	object, ok := item.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	n.history.Advance(object.ResourceVersion)
	n.mu.Lock()
	delete(n.versions, object.Name)
	n.mu.Unlock()
	n.changed()
	return nil
}

// Bookmark is called when there is nothing new up to a version.
func (n *NameInformer) Bookmark(version string) error {
	n.history.Advance(version)
	return nil
}

// Replace is called with a list of all objects. Another list of the same versions changes nothing,
// unless they belong to another history of the cluster.
func (n *NameInformer) Replace(items []any, version string) error {
	now := make(map[string]string, len(items))
	for _, item := range items {
		if object, ok := item.(*metav1.PartialObjectMetadata); ok {
			now[object.Name] = object.ResourceVersion
		}
	}
	another := n.history.Restart(version)
	n.mu.Lock()
	same := maps.Equal(n.versions, now)
	n.versions = now
	n.mu.Unlock()
	if !same || another {
		n.changed()
	}
	n.once.Do(func() { close(n.synced) })
	return nil
}

// Resync does nothing.
func (n *NameInformer) Resync() error { return nil }

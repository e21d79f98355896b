package discovery

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Cluster-scoped resources whose objects determine what is served.
var (
	Namespaces                = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	CustomResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// NameInformer tracks the names of the objects of a cluster-scoped resource, by their
// metadata alone. It is safe for concurrent use.
type NameInformer struct {
	access       *Access
	informer     cache.SharedIndexInformer
	registration cache.ResourceEventHandlerRegistration
}

// NewNameInformer returns a NameInformer, which the caller must Run. It calls changed
// for every object that exists at first, is created, changes, or is deleted, and
// failed for every error that keeps it from knowing. Both functions must not block.
func NewNameInformer(config *rest.Config, client *http.Client, resource schema.GroupVersionResource, changed func(), failed func(error)) (*NameInformer, error) {
	access, err := NewAccess(config, client, resource)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be watched: %w", resource.Resource, err)
	}
	n := &NameInformer{access: access}
	n.informer = metadatainformer.NewFilteredMetadataInformer(objects, resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	err = n.addHandlers(changed, failed)
	return n, err
}

// addHandlers registers the two functions with the informer.
func (n *NameInformer) addHandlers(changed func(), failed func(error)) error {
	if err := n.informer.SetTransform(stripToNames); err != nil {
		return err
	}
	if err := n.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { failed(err) }); err != nil {
		return err
	}
	registration, err := n.informer.AddEventHandler(onChange(changed))
	n.registration = registration
	return err
}

// onChange calls a function for every change of an object. Another list of the same objects, as
// after a watch that has expired, is none.
func onChange(changed func()) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() },
		UpdateFunc: func(before, after any) {
			if versionOf(before) == "" || versionOf(before) != versionOf(after) {
				changed()
			}
		},
		DeleteFunc: func(any) { changed() },
	}
}

func versionOf(item any) string {
	if object, ok := item.(*metav1.PartialObjectMetadata); ok {
		return object.ResourceVersion
	}
	return ""
}

// stripToNames drops all parts of an object that are not needed.
func stripToNames(item any) (any, error) {
	object, ok := item.(*metav1.PartialObjectMetadata)
	if !ok {
		return item, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion}}, nil
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
func (n *NameInformer) Run(ctx context.Context) { n.informer.RunWithContext(ctx) }

// Synced returns a channel that is closed when all initial names are known.
func (n *NameInformer) Synced() <-chan struct{} { return n.registration.HasSyncedChecker().Done() }

// List returns the sorted names.
func (n *NameInformer) List() []string {
	names := n.informer.GetStore().ListKeys()
	slices.Sort(names)
	return names
}

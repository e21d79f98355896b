package peering

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/settings"
)

// watchBackoff returns the delays between attempts to watch. The longest one is far
// shorter than a usual lifetime: the operator must notice a new peer in time.
func watchBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 5 * time.Second}
}

// watch passes on the states of the object until the watch ends.
func (o *peeringObject) watch(ctx context.Context, show func(peeringState)) error {
	// Request only the one object: others may be forbidden. Lists are the latest ones: an old one could
	// show a peer that is gone, or hide a new one.
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, o.target.Name).String()
	narrow := func(options *metav1.ListOptions) { options.FieldSelector = selector }
	source := relist.NewSource(o.resource, requestTimeout, settings.Default().Watching, narrow, nil)
	logger := klog.FromContext(ctx).V(2) // what matters is logged by the member
	reflector := cache.NewReflectorWithOptions(source.ListWatch(), &unstructured.Unstructured{}, stateStore(show), cache.ReflectorOptions{
		Logger: &logger, Name: "peering", TypeDescription: o.target.kind(), Backoff: watchBackoff(),
	})
	err := reflector.ListAndWatchWithContext(klog.NewContext(ctx, logger))
	switch {
	case apierrors.IsNotFound(err):
		return o.target.notFound(o.group, true)
	case apierrors.IsResourceExpired(err): // the watch was interrupted
		return nil
	default:
		return err
	}
}

// stateStore is a store for a reflector. It stores nothing, and passes the states on.
type stateStore func(peeringState)

// Add passes on the state of a new object.
func (s stateStore) Add(item any) error { return s.Update(item) }

// Update passes on the state of a changed object.
func (s stateStore) Update(item any) error {
	if found, ok := item.(*unstructured.Unstructured); ok {
		s(stateOf(found))
	}
	return nil
}

// Delete passes on the deletion of the object.
func (s stateStore) Delete(item any) error {
	if last, ok := item.(*unstructured.Unstructured); ok {
		s(peeringState{version: last.GetResourceVersion()})
	}
	return nil
}

// Replace passes on the result of a list.
func (s stateStore) Replace(items []any, version string) error {
	if len(items) == 0 {
		s(peeringState{version: version})
	}
	for _, item := range items {
		_ = s.Update(item)
	}
	return nil
}

// Resync does nothing.
func (s stateStore) Resync() error { return nil }

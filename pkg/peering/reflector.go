package peering

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// watchBackoff are the pauses of a watch that cannot be begun. The longest is far
// below a usual lifetime: a new peer is to be noticed in time.
func watchBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 5 * time.Second}
}

func (o *peeringObject) watch(ctx context.Context, show func(peeringState)) error {
	logger := klog.FromContext(ctx).V(2) // it is told what matters to us
	reflector := cache.NewReflectorWithOptions(o.listWatch(), &unstructured.Unstructured{}, stateStore(show), cache.ReflectorOptions{
		Logger: &logger, Name: "peering", TypeDescription: o.target.kind(), Backoff: watchBackoff(),
	})
	err := reflector.ListAndWatchWithContext(klog.NewContext(ctx, logger))
	if apierrors.IsNotFound(err) {
		return o.target.notFound(true)
	}
	return err
}

// listWatch shows the one object and no others: more may be forbidden.
func (o *peeringObject) listWatch() cache.ListerWatcher {
	named := fields.OneTermEqualSelector(metav1.ObjectNameField, o.target.Name).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = named
			// The freshest there is: an old list could show a peer that is gone,
			// or hide one that has come.
			options.ResourceVersion, options.ResourceVersionMatch = "", ""
			return o.resource.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = named
			return o.resource.Watch(ctx, options)
		},
	}
}

// stateStore is a store for a reflector that keeps nothing: it tells the last state.
type stateStore func(peeringState)

// Add tells of an object that has come.
func (s stateStore) Add(item any) error { return s.Update(item) }

// Update tells of an object that has changed.
func (s stateStore) Update(item any) error {
	if found, ok := item.(*unstructured.Unstructured); ok {
		s(stateOf(found))
	}
	return nil
}

// Delete tells that the object is gone.
func (s stateStore) Delete(item any) error {
	if last, ok := item.(*unstructured.Unstructured); ok {
		s(peeringState{version: last.GetResourceVersion()})
	}
	return nil
}

// Replace tells of what there is when the watch begins.
func (s stateStore) Replace(items []any, version string) error {
	if len(items) == 0 {
		s(peeringState{version: version})
	}
	for _, item := range items {
		_ = s.Update(item)
	}
	return nil
}

// Resync has nothing to repeat.
func (s stateStore) Resync() error { return nil }

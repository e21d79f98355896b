package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observer watches the objects, to see when the operator has handled them: their metadata,
// or whole objects if that is recorded in the status.
type observer struct {
	watch   watch.Interface
	handled string // as in a subject

	mu       sync.Mutex
	expected func(watch.EventType, metav1.Object) bool
	seen     map[string]struct{}
	missing  int
	also     func(metav1.Object) // sees all
	done     chan struct{}
	ended    chan struct{}
}

func observe(ctx context.Context, config *rest.Config, handled string) (*observer, error) {
	api, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return nil, err
	}
	list := newList(handled)
	if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the objects: %w", err)
	}
	// The API server ends the watches of a definition that is new.
	watching, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return api.Watch(ctx, newList(handled), &client.ListOptions{Namespace: namespace, Raw: &options})
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching the objects: %w", err)
	}
	o := &observer{watch: watching, handled: handled, ended: make(chan struct{})}
	go o.look()
	return o, nil
}

// newList returns a list of what must be seen of the objects.
func newList(handled string) client.ObjectList {
	kinds := groupVersion.WithKind(kind + "List")
	if handled == handledInStatus {
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(kinds)
		return objects
	}
	metadata := &metav1.PartialObjectMetadataList{}
	metadata.SetGroupVersionKind(kinds)
	return metadata
}

func (o *observer) stop() { o.watch.Stop() }

func (o *observer) look() {
	defer close(o.ended)
	for event := range o.watch.ResultChan() {
		if object, ok := event.Object.(metav1.Object); ok {
			o.see(event.Type, object)
		}
	}
}

func (o *observer) see(event watch.EventType, object metav1.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.also != nil {
		o.also(object)
	}
	if _, seen := o.seen[object.GetName()]; seen || o.missing == 0 || !o.expected(event, object) {
		return
	}
	o.seen[object.GetName()] = struct{}{}
	if o.missing--; o.missing == 0 {
		close(o.done)
	}
}

// observe calls a function with every object that changes, from now on.
func (o *observer) observe(do func(metav1.Object)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.also = do
}

// expect starts to wait for so many objects that meet the condition.
func (o *observer) expect(objects int, condition func(watch.EventType, metav1.Object) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expected, o.missing = condition, objects
	o.seen, o.done = make(map[string]struct{}, objects), make(chan struct{})
}

// expectHandled waits for objects whose revision is handled.
func (o *observer) expectHandled(objects, revision int) {
	text := fmt.Sprintf(`"revision":%d`, revision)
	o.expect(objects, func(_ watch.EventType, object metav1.Object) bool {
		if whole, ok := object.(*unstructured.Unstructured); ok {
			handled, _, _ := unstructured.NestedInt64(whole.Object, strings.Split(o.handled, ".")...)
			return handled == int64(revision)
		}
		return strings.Contains(object.GetAnnotations()[o.handled], text)
	})
}

// expectGone waits for deleted objects.
func (o *observer) expectGone(objects int) {
	o.expect(objects, func(event watch.EventType, _ metav1.Object) bool { return event == watch.Deleted })
}

// wait returns when all expected objects have been seen.
func (o *observer) wait(ctx context.Context) error {
	select {
	case <-o.done:
		return nil
	case <-o.ended:
		return errors.New("the watch of the objects ended early")
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		return fmt.Errorf("%d objects were not handled: %w", o.missing, context.Cause(ctx))
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// observer watches the metadata of the objects, to see when the operator has handled
// them.
type observer struct {
	watch      watch.Interface
	annotation string // the annotation of handled objects

	mu       sync.Mutex
	expected func(watch.EventType, *metav1.PartialObjectMetadata) bool
	seen     map[string]struct{}
	missing  int
	done     chan struct{}
	ended    chan struct{}
}

func observe(ctx context.Context, config *rest.Config, annotation string) (*observer, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects := client.Resource(groupVersion.WithResource(resource)).Namespace(namespace)
	list, err := objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the objects: %w", err)
	}
	// The API server ends the watches of a definition that is new.
	watching, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: objects.Watch})
	if err != nil {
		return nil, fmt.Errorf("watching the objects: %w", err)
	}
	o := &observer{watch: watching, annotation: annotation, ended: make(chan struct{})}
	go o.look()
	return o, nil
}

func (o *observer) stop() { o.watch.Stop() }

func (o *observer) look() {
	defer close(o.ended)
	for event := range o.watch.ResultChan() {
		if object, ok := event.Object.(*metav1.PartialObjectMetadata); ok {
			o.see(event.Type, object)
		}
	}
}

func (o *observer) see(event watch.EventType, object *metav1.PartialObjectMetadata) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, seen := o.seen[object.Name]; seen || o.missing == 0 || !o.expected(event, object) {
		return
	}
	o.seen[object.Name] = struct{}{}
	if o.missing--; o.missing == 0 {
		close(o.done)
	}
}

// expect starts to wait for so many objects that meet the condition.
func (o *observer) expect(objects int, condition func(watch.EventType, *metav1.PartialObjectMetadata) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expected, o.missing = condition, objects
	o.seen, o.done = make(map[string]struct{}, objects), make(chan struct{})
}

// expectHandled waits for objects whose revision is handled.
func (o *observer) expectHandled(objects, revision int) {
	text := fmt.Sprintf(`"revision":%d`, revision)
	o.expect(objects, func(_ watch.EventType, object *metav1.PartialObjectMetadata) bool {
		return strings.Contains(object.Annotations[o.annotation], text)
	})
}

// expectGone waits for deleted objects.
func (o *observer) expectGone(objects int) {
	o.expect(objects, func(event watch.EventType, _ *metav1.PartialObjectMetadata) bool { return event == watch.Deleted })
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

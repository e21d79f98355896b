package converge

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// listTimeout is how long a call waits for the first list of a watch before it fails with the
// reason why there is none.
const listTimeout = 30 * time.Second

// streamKey identifies a watch of children: of a resource, in a namespace or in all.
type streamKey struct {
	Key       // without a name
	namespace string
}

// stream is a watch of the children of one kind: only of objects with the label.
type stream struct {
	converger *Converger
	resource  selector.Resource
	namespace string // empty for all
	listed    chan struct{}
	once      sync.Once

	mu  sync.Mutex
	err error // of the last request
}

// watch begins to watch places unless they are watched already, and returns their streams. A kind
// that is no longer served has no children.
func (c *Converger) watch(ctx context.Context, parent Parent, places convergence.Places) ([]*stream, error) {
	var streams []*stream
	for place := range places {
		resource, err := c.Resources.FindKind(ctx, place.GroupKind)
		if isNotServed(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		streams = append(streams, c.stream(resource, c.scopeOf(parent, place)))
	}
	return streams, nil
}

// scopeOf returns the namespace of the watch for a place: all, unless the operator is
// restricted to some.
func (c *Converger) scopeOf(parent Parent, place convergence.Place) string {
	switch {
	case len(c.Namespaces) == 0 || place.Namespace == convergence.NoNamespace:
		return metav1.NamespaceAll
	case place.Namespace == "":
		return parent.Key.Namespace
	default:
		return place.Namespace
	}
}

func (c *Converger) stream(r selector.Resource, namespace string) *stream {
	key := streamKey{Key{GroupKind: r.GVK().GroupKind()}, namespace}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.streams[key]
	if known == nil {
		known = &stream{converger: c, resource: r, namespace: namespace, listed: make(chan struct{})}
		c.streams[key] = known
		c.running.Go(func() { known.run(c.lifetime) })
	}
	return known
}

// run watches until the context is done.
func (s *stream) run(ctx context.Context) {
	source := s.converger.dynamic.Resource(s.resource.GVR()).Namespace(s.namespace)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = convergence.OwnerLabel
			options.ResourceVersion, options.ResourceVersionMatch = "", "" // consistent, never from a cache
			list, err := source.List(ctx, options)
			s.noteError(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = convergence.OwnerLabel
			started, err := source.Watch(ctx, options)
			s.noteError(err)
			return started, err
		},
	}
	// wait returns the errors to those who need the watch. (The loop of the reflector itself logs
	// them, and shares its pauses with the whole process.)
	silent := logr.Discard()
	reflector := cache.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, s, cache.ReflectorOptions{Name: "children", Logger: &silent})
	pauses := s.converger.Watching
	for pause := pauses.ReconnectBackoff; ctx.Err() == nil; pause = min(2*pause, pauses.ReconnectLimit) {
		began := time.Now()
		err := reflector.ListAndWatchWithContext(ctx)
		if err == nil || time.Since(began) > pauses.ReconnectLimit {
			pause = pauses.ReconnectBackoff
		}
		sleep.For(ctx, pause+rand.N(pause+1))
	}
}

func (s *stream) noteError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// wait waits for the first list.
func (s *stream) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	select {
	case <-s.listed:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		return fmt.Errorf("the children of the kind %s cannot be watched, so none was changed: %w", s.resource.GVK().GroupKind(), withDefault(s.err, ctx.Err()))
	}
}

func withDefault(err, other error) error {
	if err == nil {
		return other
	}
	return err
}

var _ cache.ReflectorStore = (*stream)(nil)

func (s *stream) fact(item any) *fact {
	u, ok := item.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	return s.converger.factOf(u)
}

// Add is called for a new child.
func (s *stream) Add(item any) error { return s.Update(item) }

// Update is called for another version of a child.
func (s *stream) Update(item any) error {
	if f := s.fact(item); f != nil {
		s.converger.observe(f, false)
	}
	return nil
}

// Delete is called for an object that is deleted, or has lost the label.
func (s *stream) Delete(item any) error {
	if f := s.fact(item); f != nil {
		s.converger.observe(f, true)
	}
	return nil
}

// Replace is called with a complete list.
func (s *stream) Replace(items []any, version string) error {
	var list []*fact
	for _, item := range items {
		list = append(list, s.fact(item))
	}
	list = slices.DeleteFunc(list, func(f *fact) bool { return f == nil })
	s.converger.replace(s.covers, list, version)
	s.once.Do(func() { close(s.listed) })
	return nil
}

// covers reports whether the watch shows a child.
func (s *stream) covers(key Key) bool {
	return key.GroupKind == s.resource.GVK().GroupKind() && (s.namespace == "" || s.namespace == key.Namespace)
}

// Resync does nothing.
func (s *stream) Resync() error { return nil }

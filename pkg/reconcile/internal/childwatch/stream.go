package childwatch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// listTimeout is how long a call waits for the first list of a watch before it fails with the
// reason why there is none.
const listTimeout = 30 * time.Second

// Stream is a watch of the children of one kind, in one version: only of objects with the label.
type Stream struct {
	scope
	watches  *Watches
	resource selector.Resource
	listed   *listed
	attempts watch.Attempts
}

// listed is when a watch has shown all children that existed when it began. The stream of another
// version continues with that of the former one.
type listed struct {
	sync.Once
	done chan struct{}
}

func (l *listed) note() { l.Do(func() { close(l.done) }) }

func (l *listed) isDone() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// newStream returns a stream that is not running yet. The former one watches another version; it is
// nil if there is none.
func newStream(w *Watches, of scope, r selector.Resource, former *Stream) *Stream {
	s := &Stream{scope: of, watches: w, resource: r, listed: &listed{done: make(chan struct{})}}
	if former != nil {
		s.listed = former.listed
	}
	w.Metrics.Watching(r.String(), false)
	s.attempts = watch.Attempts{
		Log: w.Logger.WithValues("resource", r.String(), "namespace", of.namespace), Metrics: w.Metrics, Resource: r.String(), Messages: &watch.OfChildren,
	}
	return s
}

// run watches until the context is done, or until the server does not serve the resource anymore.
func (s *Stream) run(ctx context.Context) {
	// The loop of the reflector itself logs errors again, and shares its pauses with the whole
	// process.
	silent := logr.Discard()
	reflector := cache.NewReflectorWithOptions(s.source(), &unstructured.Unstructured{}, s, cache.ReflectorOptions{Name: "children", Logger: &silent})
	pauses := s.watches.Watching
	for pause := pauses.ReconnectBackoff; ctx.Err() == nil; pause = min(2*pause, pauses.ReconnectLimit) {
		began := time.Now()
		err := reflector.ListAndWatchWithContext(ctx)
		if s.attempts.MayBeRemoved() && s.watches.resolveAgain(ctx, s) {
			return
		}
		if err == nil || time.Since(began) > pauses.ReconnectLimit {
			pause = pauses.ReconnectBackoff
		}
		sleep.For(ctx, pause+rand.N(pause+1))
	}
}

// source returns the requests of the reflector.
func (s *Stream) source() *cache.ListWatch {
	source := s.watches.cluster.Resource(s.resource.GVR()).Namespace(s.namespace)
	note := func(ctx context.Context, err error) {
		if ctx.Err() == nil { // it was not stopped
			s.attempts.Note(err)
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = convergence.OwnerLabel
			options.ResourceVersion, options.ResourceVersionMatch = "", "" // consistent, never from a cache
			list, err := source.List(ctx, options)
			if err != nil {
				note(ctx, err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.LabelSelector = convergence.OwnerLabel
			timeout := int64((1 + rand.Float64()) * s.watches.Watching.ServerTimeout.Seconds())
			options.TimeoutSeconds = &timeout
			started, err := source.Watch(ctx, options)
			note(ctx, err)
			return started, err
		},
	}
}

// status returns the state of the watch.
func (s *Stream) status() watch.Status {
	return watch.Status{Resource: s.resource.String(), Namespace: s.namespace, Children: true, Listed: s.listed.isDone(), Err: s.attempts.Err()}
}

// Wait waits for the first list.
func (s *Stream) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	select {
	case <-s.listed.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the children of the kind %s cannot be watched, so none was changed: %w", s.kind, withDefault(s.attempts.Err(), ctx.Err()))
	}
}

func withDefault(err, other error) error {
	if err == nil {
		return other
	}
	return err
}

var _ cache.ReflectorStore = (*Stream)(nil)

// Add is called for a new child.
func (s *Stream) Add(item any) error { return s.Update(item) }

// Update is called for another version of a child.
func (s *Stream) Update(item any) error {
	if u, ok := item.(*unstructured.Unstructured); ok {
		s.watches.Observe(u, false)
	}
	return nil
}

// Delete is called for an object that is deleted, or has lost the label.
func (s *Stream) Delete(item any) error {
	if u, ok := item.(*unstructured.Unstructured); ok {
		s.watches.Observe(u, true)
	}
	return nil
}

// Replace is called with a complete list.
func (s *Stream) Replace(items []any, version string) error {
	var all []*unstructured.Unstructured
	for _, item := range items {
		if u, ok := item.(*unstructured.Unstructured); ok {
			all = append(all, u)
		}
	}
	s.watches.Replace(s.covers, all, version)
	s.listed.note()
	return nil
}

// covers reports whether the watch shows a child.
func (s *Stream) covers(key convergence.ChildKey) bool {
	return key.GroupKind == s.kind && (s.namespace == "" || s.namespace == key.Namespace)
}

// Resync does nothing.
func (s *Stream) Resync() error { return nil }

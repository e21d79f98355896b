package childwatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/internal/relist"
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
	history  relist.History // only for the reflector
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
	relist.Run(ctx, s.watches.Watching, s.source(), &unstructured.Unstructured{}, s, func(error) bool {
		return s.attempts.MayBeRemoved() && s.watches.resolveAgain(ctx, s)
	})
}

// source returns the requests of the reflector.
func (s *Stream) source() *relist.Source {
	source := s.watches.cluster.Resource(s.resource.GVR()).Namespace(s.namespace)
	note := func(ctx context.Context, err error) {
		if ctx.Err() == nil { // it was not stopped
			s.attempts.Note(err)
		}
	}
	return &relist.Source{
		Timeout: s.watches.Watching.ServerTimeout, Interrupted: s.attempts.Interrupted,
		ListFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = convergence.OwnerLabel
			limited, cancel := context.WithTimeout(ctx, s.watches.RequestTimeout)
			defer cancel()
			list, err := source.List(limited, options)
			if err != nil {
				note(ctx, err)
			}
			return list, err
		},
		WatchFunc: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.LabelSelector = convergence.OwnerLabel
			started, err := relist.Limit(ctx, s.watches.Watching.InactivityTimeout, func(ctx context.Context) (apiwatch.Interface, error) {
				return source.Watch(ctx, options)
			})
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

var (
	_ cache.ReflectorStore         = (*Stream)(nil)
	_ cache.ReflectorBookmarkStore = (*Stream)(nil)
)

// Add is called for a new child.
func (s *Stream) Add(item any) error { return s.Update(item) }

// Update is called for another version of a child.
func (s *Stream) Update(item any) error { return s.observe(item, false) }

// Delete is called for an object that is deleted, or has lost the label.
func (s *Stream) Delete(item any) error { return s.observe(item, true) }

func (s *Stream) observe(item any, gone bool) error {
	if u, ok := item.(*unstructured.Unstructured); ok {
		s.history.Advance(u.GetResourceVersion())
		s.watches.Observe(u, gone)
	}
	return nil
}

// Bookmark is called when there is nothing new up to a version.
func (s *Stream) Bookmark(version string) error {
	s.history.Advance(version)
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
	another := s.history.Restart(version)
	if another {
		s.attempts.Rewound(version)
	}
	s.watches.Replace(s.covers, all, version, another)
	s.listed.note()
	return nil
}

// covers reports whether the watch shows a child.
func (s *Stream) covers(key convergence.ChildKey) bool {
	return key.GroupKind == s.kind && (s.namespace == "" || s.namespace == key.Namespace)
}

// Resync does nothing.
func (s *Stream) Resync() error { return nil }

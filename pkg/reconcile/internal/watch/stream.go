package watch

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Status is the state of one watch.
type Status struct {
	// Resource is the name of the resource, as in keys. Namespace is empty for all namespaces.
	Resource, Namespace string
	// Listed is set if all initial objects are known.
	Listed bool
	// Err is the reason why the watch does not continue, or nil. It is retried.
	Err error
	// Children is set if the watch shows only the children of handlers of Ensure.
	Children bool
}

// Stream is one watch of one resource, in one namespace or in all of them.
type Stream struct {
	*store
	namespace string // empty for all namespaces
	run       func()
	cancel    context.CancelFunc
	stopped   <-chan struct{} // closed when it is no longer wanted
	ended     chan struct{}   // closed after its last event
	refused   chan struct{}   // closed when the initial list is refused for the lack of a permission
	refuse    sync.Once

	attempts Attempts
}

// NewStream creates a stream that passes the events of a resource to a consumer. Nothing runs it.
func NewStream(ctx context.Context, r *Resource, namespace string, c Consumer) *Stream {
	return &Stream{namespace: namespace, ended: make(chan struct{}), refused: make(chan struct{}), store: &store{
		observe:   func(event object.WatchEvent) { c.Observe(ctx, r, event) },
		beginAnew: func(now *object.Snapshot) { c.BeginAnew(r, r.Key(now)) },
		rewound:   func(string) {}, interrupt: func() {}, done: make(chan struct{}), objects: map[types.NamespacedName]*object.Snapshot{},
	}}
}

// newStream returns the stream of a namespace, which is not running yet.
func (w *Watcher) newStream(ctx context.Context, r *Resource, namespace string) *Stream {
	ctx, cancel := context.WithCancel(ctx)
	s := NewStream(ctx, r, namespace, w.Consumer)
	s.cancel, s.stopped = cancel, ctx.Done()
	s.attempts = Attempts{Log: w.Logger.WithValues("resource", r.Name, "namespace", namespace), Metrics: w.Metrics, Resource: r.Name, Messages: &ofObjects}
	source := r.API.Source(namespace, w.Settings.Watching, func(err error) { w.note(s, err) })
	source.Interrupted = s.attempts.Interrupted
	s.rewound = s.attempts.Rewound
	s.interrupt = source.Interrupt
	s.run = func() {
		defer close(s.ended)
		relist.Run(ctx, w.Settings.Watching, source, &object.Snapshot{}, s.store, func(error) bool { return false })
	}
	return s
}

// Listed returns a channel that is closed when all initial objects are known and in the indices.
func (s *store) Listed() <-chan struct{} { return s.done }

// isListed reports whether all initial objects are known.
func (s *store) isListed() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// hasNothing reports whether the error of a list means that there is nothing to handle: the
// resource was removed, the stream was stopped, or it has never shown any objects.
func (s *Stream) hasNothing(err error) bool {
	select {
	case <-s.stopped:
		return true
	default:
		return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && !s.isListed()
	}
}

// note records an attempt to list or watch; nil means that a watch has begun.
func (w *Watcher) note(s *Stream, err error) {
	if apierrors.IsForbidden(err) && !s.isListed() {
		s.refuse.Do(func() { close(s.refused) })
	}
	s.attempts.Note(err)
	if mayBeRemoved(err) {
		w.rediscover.send()
	}
}

// streams contains the streams of one resource. One goroutine changes them; others can read
// them without waiting.
type streams struct {
	current atomic.Pointer[map[string]*Stream]
}

// all returns the streams by namespace. Do not modify the map.
func (s *streams) all() map[string]*Stream {
	if current := s.current.Load(); current != nil {
		return *current
	}
	return nil
}

// of returns the stream with the objects of a namespace, or nil if there is none.
func (s *streams) of(namespace string) *Stream {
	all := s.all()
	if cluster := all[metav1.NamespaceAll]; cluster != nil {
		return cluster
	}
	return all[namespace]
}

func (s *streams) put(added *Stream) {
	changed := maps.Clone(s.all())
	if changed == nil {
		changed = map[string]*Stream{}
	}
	changed[added.namespace] = added
	s.current.Store(&changed)
}

func (s *streams) remove(namespace string) {
	changed := maps.Clone(s.all())
	delete(changed, namespace)
	s.current.Store(&changed)
}

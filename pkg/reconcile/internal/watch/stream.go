package watch

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

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
	namespace string // empty for all namespaces
	informer  cache.SharedIndexInformer
	listening cache.ResourceEventHandlerRegistration
	run       func()
	cancel    context.CancelFunc
	stopped   <-chan struct{} // closed when it is no longer wanted
	ended     chan struct{}   // closed after its last event
	refused   chan struct{}   // closed when the initial list is refused for the lack of a permission
	refuse    sync.Once

	attempts Attempts
}

// NewStream creates a stream of an informer for one listener.
func NewStream(namespace string, informer cache.SharedIndexInformer, listener cache.ResourceEventHandler) (*Stream, error) {
	listening, err := informer.AddEventHandler(listener)
	return &Stream{namespace: namespace, informer: informer, listening: listening, ended: make(chan struct{}), refused: make(chan struct{})}, err
}

// newStream returns the stream of a namespace, which is not running yet.
func (w *Watcher) newStream(ctx context.Context, r *Resource, namespace string) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	var s *Stream
	source := r.API.ListWatch(namespace, w.Settings.Watching, func(err error) { w.note(s, err) })
	informer := cache.NewSharedIndexInformerWithOptions(source, &object.Snapshot{}, cache.SharedIndexInformerOptions{ObjectDescription: r.Name})
	s, err := NewStream(namespace, informer, Listener(ctx, r, w.Consumer))
	if err == nil {
		// The source reports failures with more details than reflectors.
		err = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {})
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%s cannot be watched: %w", r.Name, err)
	}
	s.cancel, s.stopped = cancel, ctx.Done()
	s.attempts = Attempts{Log: w.Logger.WithValues("resource", r.Name, "namespace", namespace), Metrics: w.Metrics, Resource: r.Name, Messages: &ofObjects}
	s.run = func() {
		defer close(s.ended)
		informer.RunWithContext(ctx)
	}
	return s, nil
}

// listed returns a channel that is closed when all initial objects are known and in the
// indices.
func (s *Stream) listed() <-chan struct{} { return s.listening.HasSyncedChecker().Done() }

// cached returns an object, or nil if it does not exist.
func (s *Stream) cached(name types.NamespacedName) *object.Snapshot {
	found, _, _ := s.informer.GetStore().GetByKey(cache.NewObjectName(name.Namespace, name.Name).String())
	return snapshotOf(found)
}

// objects returns all objects of the stream.
func (s *Stream) objects() []*object.Snapshot {
	var snapshots []*object.Snapshot
	for _, item := range s.informer.GetStore().List() {
		snapshots = append(snapshots, snapshotOf(item))
	}
	return snapshots
}

// size returns the number of objects of the stream.
func (s *Stream) size() int { return len(s.informer.GetStore().ListKeys()) }

// snapshotOf returns the content of our informers, which is always a snapshot.
func snapshotOf(item any) *object.Snapshot {
	snapshot, _ := item.(*object.Snapshot)
	return snapshot
}

// hasNothing reports whether the error of a list means that there is nothing to handle: the
// resource was removed, the stream was stopped, or it has never shown any objects.
func (s *Stream) hasNothing(err error) bool {
	select {
	case <-s.stopped:
		return true
	default:
		return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && !s.listening.HasSynced()
	}
}

// note records an attempt to list or watch; nil means that a watch has begun.
func (w *Watcher) note(s *Stream, err error) {
	if apierrors.IsForbidden(err) && !s.listening.HasSynced() {
		s.refuse.Do(func() { close(s.refused) })
	}
	if s.attempts.Note(err); mayBeRemoved(err) {
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

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

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Status is the state of one watch.
type Status struct {
	// Resource is its name, as keys have it; Namespace is empty for all of them.
	Resource, Namespace string
	// Listed: all objects are known that were there at its beginning.
	Listed bool
	// Err is why it does not go on; nil if it does. It is retried.
	Err error
}

// Stream is one watch: of one resource, in one namespace or in all of them.
type Stream struct {
	namespace string // empty: all
	informer  cache.SharedIndexInformer
	listening cache.ResourceEventHandlerRegistration
	run       func()
	cancel    context.CancelFunc
	stopped   <-chan struct{} // closed when it is not wanted anymore
	ended     chan struct{}   // closed when it will never show anything again

	mu  sync.Mutex
	err error // of the last attempt to list or to watch; nil: it is watched
}

// NewStream makes a stream of what the informer shows, for one listener.
func NewStream(namespace string, informer cache.SharedIndexInformer, listener cache.ResourceEventHandler) (*Stream, error) {
	listening, err := informer.AddEventHandler(listener)
	return &Stream{namespace: namespace, informer: informer, listening: listening, ended: make(chan struct{})}, err
}

// newStream makes the stream of a namespace, which is not running yet.
func (w *Watcher) newStream(ctx context.Context, r *Resource, namespace string) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	var s *Stream
	source := r.API.ListWatch(namespace, w.Settings.Watching, func(err error) { w.noteAttempt(r, s, err) })
	informer := cache.NewSharedIndexInformerWithOptions(source, &object.Snapshot{}, cache.SharedIndexInformerOptions{ObjectDescription: r.Name})
	s, err := NewStream(namespace, informer, Listener(ctx, r, w.Consumer))
	if err == nil {
		// The source has reported what fails, and more of it than reflectors do.
		err = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {})
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%s cannot be watched: %w", r.Name, err)
	}
	s.cancel, s.stopped = cancel, ctx.Done()
	s.run = func() {
		defer close(s.ended)
		informer.RunWithContext(ctx)
	}
	return s, nil
}

// listed is closed when all objects that were there at the beginning are known, and in
// the indices.
func (s *Stream) listed() <-chan struct{} { return s.listening.HasSyncedChecker().Done() }

// cached returns an object; nil if it is not there.
func (s *Stream) cached(name types.NamespacedName) *object.Snapshot {
	found, _, _ := s.informer.GetStore().GetByKey(cache.NewObjectName(name.Namespace, name.Name).String())
	return snapshotOf(found)
}

// objects returns all objects that the stream has shown.
func (s *Stream) objects() []*object.Snapshot {
	var snapshots []*object.Snapshot
	for _, item := range s.informer.GetStore().List() {
		snapshots = append(snapshots, snapshotOf(item))
	}
	return snapshots
}

// snapshotOf returns what our informers hold: nothing else is ever put into them.
func snapshotOf(item any) *object.Snapshot {
	snapshot, _ := item.(*object.Snapshot)
	return snapshot
}

// hasNothing reports whether the error of a list means that there is nothing to be
// handled: the resource was removed, the stream was stopped, or it has never shown
// anything.
func (s *Stream) hasNothing(err error) bool {
	select {
	case <-s.stopped:
		return true
	default:
		return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && !s.listening.HasSynced()
	}
}

// noteAttempt notes whether the API server lists and watches; nil: a watch has begun.
func (w *Watcher) noteAttempt(r *Resource, s *Stream, err error) {
	log := w.Logger.WithValues("resource", r.Name, "namespace", s.namespace)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		log.V(1).Info("The watch was interrupted, and is restarted.", "reason", err.Error())
		w.Metrics.Restart(r.Name, metrics.Interrupted)
		return
	}
	if err != nil {
		w.Metrics.Restart(r.Name, metrics.Unavailable)
	}
	switch isNew, recovered := s.noteError(err); {
	case recovered:
		log.Info("The objects are watched again.")
	case isNew:
		log.Error(err, "The objects cannot be watched now; this is retried.")
	}
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		w.rediscover.send() // the resource may be gone
	}
}

// noteError keeps the error of the last attempt. It reports whether the error is new,
// and whether an earlier one is over. The texts of network errors change with every
// attempt: only another answer of the server is another error.
func (s *Stream) noteError(err error) (isNew, recovered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.err
	s.err = err
	return err != nil && (before == nil || apierrors.ReasonForError(before) != apierrors.ReasonForError(err)), err == nil && before != nil
}

// lastError returns why the watch does not go on; nil if it does.
func (s *Stream) lastError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// streams are those of one resource. One goroutine changes them; many read them, and
// never wait.
type streams struct {
	current atomic.Pointer[map[string]*Stream]
}

// all returns the streams by namespace; the map must not be changed.
func (s *streams) all() map[string]*Stream {
	if current := s.current.Load(); current != nil {
		return *current
	}
	return nil
}

// of returns the stream that has the objects of a namespace; nil if there is none.
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

package reconcile

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// stream is one watch: of one resource, in one namespace or in all of them.
type stream struct {
	namespace string // empty: all
	informer  cache.SharedIndexInformer
	listening cache.ResourceEventHandlerRegistration
	run       func()
	cancel    context.CancelFunc
	left      <-chan struct{} // closed when it is not wanted any longer
	ended     chan struct{}   // closed when it will never tell of anything again

	mu      sync.Mutex
	problem error // of the last attempt to list or to watch; nil: it is watched
}

// newStream makes a watch, which has yet to be run.
func (e *Engine) newStream(ctx context.Context, s *served, namespace string) (*stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &stream{namespace: namespace, cancel: cancel, left: ctx.Done(), ended: make(chan struct{})}
	source := s.api.ListWatch(namespace, e.Settings.Watching, func(err error) { e.attempted(s, w, err) })
	informer := cache.NewSharedIndexInformerWithOptions(source, &object.Snapshot{}, cache.SharedIndexInformerOptions{ObjectDescription: s.name})
	w.informer = informer
	w.run = func() {
		defer close(w.ended)
		informer.RunWithContext(ctx)
	}
	listening, err := informer.AddEventHandler(e.listener(ctx, s))
	if err == nil {
		// What fails was told by the source, and more of it than reflectors tell.
		err = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {})
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%s cannot be watched: %w", s.name, err)
	}
	w.listening = listening
	return w, nil
}

// listed is closed when all objects that were there at the beginning are known,
// and in the indices.
func (w *stream) listed() <-chan struct{} { return w.listening.HasSyncedChecker().Done() }

// attempted notes whether the API server lists and watches; nil: a watch has begun.
func (e *Engine) attempted(s *served, w *stream, err error) {
	log := e.Logger.WithValues("resource", s.name, "namespace", w.namespace)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		log.V(1).Info("The watch was interrupted, and is begun again.", "reason", err.Error())
		e.Metrics.Restart(s.name, metrics.Interrupted)
		return
	}
	if err != nil {
		e.Metrics.Restart(s.name, metrics.Unavailable)
	}
	switch news, healed := w.note(err); {
	case healed:
		log.Info("The objects are watched again.")
	case news:
		log.Error(err, "The objects cannot be watched now; this is tried again.")
	}
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		e.hurry.send() // the resource may be gone
	}
}

// note keeps the problem, if there is one. It tells whether that is news, or good
// news. The words of network errors change with every attempt: only another answer
// of the server is another problem.
func (w *stream) note(err error) (news, healed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.problem
	w.problem = err
	return err != nil && (before == nil || apierrors.ReasonForError(before) != apierrors.ReasonForError(err)), err == nil && before != nil
}

// trouble is why the watch does not go on; nil if it does.
func (w *stream) trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.problem
}

// streams are the watches of one resource. They are changed by one goroutine, and
// read by many, which never wait.
type streams struct {
	current atomic.Pointer[map[string]*stream]
}

// all are the streams by namespace; not to be changed.
func (s *streams) all() map[string]*stream {
	if current := s.current.Load(); current != nil {
		return *current
	}
	return nil
}

// of is the stream that has the objects of a namespace; nil if there is none.
func (s *streams) of(namespace string) *stream {
	all := s.all()
	if cluster := all[metav1.NamespaceAll]; cluster != nil {
		return cluster
	}
	return all[namespace]
}

func (s *streams) put(w *stream) {
	changed := maps.Clone(s.all())
	if changed == nil {
		changed = map[string]*stream{}
	}
	changed[w.namespace] = w
	s.current.Store(&changed)
}

func (s *streams) remove(namespace string) {
	changed := maps.Clone(s.all())
	delete(changed, namespace)
	s.current.Store(&changed)
}

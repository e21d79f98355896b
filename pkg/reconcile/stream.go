package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/kopf/object"
	"github.com/kopf-go/kopf/pkg/reconcile/metrics"
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
	problem error  // of the last attempt to list or to watch
	version string // what was known when it was seen
}

// newStream makes a watch, which has yet to be run.
func (e *Engine) newStream(ctx context.Context, s *served, namespace string) (*stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	informer := cache.NewSharedIndexInformerWithOptions(s.api.ListWatch(namespace), &object.Snapshot{},
		cache.SharedIndexInformerOptions{ObjectDescription: s.name})
	w := &stream{namespace: namespace, informer: informer, cancel: cancel, left: ctx.Done(), ended: make(chan struct{})}
	w.run = func() {
		defer close(w.ended)
		informer.RunWithContext(ctx)
	}
	listening, err := informer.AddEventHandler(e.listener(ctx, s))
	if err == nil {
		err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { e.troubled(s, w, err) })
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

// troubled notes that the API server does not list or watch.
func (e *Engine) troubled(s *served, w *stream, err error) {
	log := e.Logger.WithValues("resource", s.name, "namespace", w.namespace)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		log.V(1).Info("The watch was interrupted, and is begun again.", "reason", err.Error())
		e.Metrics.Restart(s.name, metrics.Interrupted)
		return
	}
	e.Metrics.Restart(s.name, metrics.Unavailable)
	if w.note(err) {
		log.Error(err, "The objects cannot be watched now; this is tried again.")
	}
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		e.hurry.send() // the resource may be gone
	}
}

// note keeps the problem, and tells whether it is a new one.
func (w *stream) note(err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	version := w.informer.LastSyncResourceVersion()
	known := w.problem != nil && w.version == version && w.problem.Error() == err.Error()
	w.problem, w.version = err, version
	return !known
}

// trouble is why the watch does not go on; nil if it does.
func (w *stream) trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.problem != nil && w.version == w.informer.LastSyncResourceVersion() {
		return w.problem
	}
	return nil
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

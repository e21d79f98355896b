package childwatch

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kinds"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Config is what watches need.
type Config struct {
	// Namespaces are the names or patterns to which the operator is restricted. None means the
	// whole cluster.
	Namespaces []string
	Resources  kinds.Resources
	// Watching has the pauses between the requests of a failing watch.
	Watching settings.Watching
	// RequestTimeout limits the requests that look for another version of a kind.
	RequestTimeout time.Duration
	Logger         logr.Logger
	Metrics        *metrics.Metrics // nil disables metrics

	// Observe is called with a new version of a child, or with the last one of a child that is gone
	// or has lost the label.
	Observe func(child *unstructured.Unstructured, gone bool)
	// Replace is called with all the children that a watch covers, as of a version of the list.
	// Without a version, their kind does not exist anymore. Another is set if the list belongs to another
	// history of the cluster than what the watch has shown before.
	Replace func(covers func(convergence.ChildKey) bool, all []*unstructured.Unstructured, version string, another bool)
}

// Watches are those of the children of one operator. They are safe for concurrent use.
type Watches struct {
	Config
	cluster  dynamic.Interface // without a cache
	lifetime context.Context
	running  sync.WaitGroup

	mu      sync.Mutex
	streams map[scope]*Stream
	ended   bool // no stream begins anymore
}

// New returns watches that are not started yet.
func New(config Config) *Watches { return &Watches{Config: config, streams: map[scope]*Stream{}} }

// Start lets the watches work until the context is done, with a client that has no cache. The
// function waits for their end. Handlers can ask for others until the end of their grace period, which do
// not begin.
func (w *Watches) Start(ctx context.Context, cluster dynamic.Interface) (wait func()) {
	w.lifetime = ctx
	w.cluster = cluster
	return func() {
		w.mu.Lock()
		w.ended = true
		w.mu.Unlock()
		w.running.Wait()
	}
}

// scope identifies a watch of children: of a kind, in a namespace or in all.
type scope struct {
	kind      schema.GroupKind
	namespace string
}

// Watch begins to watch places unless they are watched already, and returns their streams. A place
// without a namespace is in the given one, which is that of the parent. A kind that is no longer
// served has no children.
func (w *Watches) Watch(ctx context.Context, namespace string, places convergence.Places) ([]*Stream, error) {
	var streams []*Stream
	for place := range places {
		resource, err := w.Resources.FindKind(ctx, place.GroupKind)
		if kinds.IsNotServed(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		streams = append(streams, w.stream(resource, w.namespaceOf(namespace, place)))
	}
	return streams, nil
}

// namespaceOf returns the namespace of the watch for a place: all, unless the operator is
// restricted to some.
func (w *Watches) namespaceOf(parent string, place convergence.Place) string {
	switch {
	case len(w.Namespaces) == 0 || place.Namespace == convergence.NoNamespace:
		return metav1.NamespaceAll
	case place.Namespace == "":
		return parent
	default:
		return place.Namespace
	}
}

// stream returns the stream of a resource, which it begins unless it is there.
func (w *Watches) stream(r selector.Resource, namespace string) *Stream {
	key := scope{r.GVK().GroupKind(), namespace}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams[key] == nil {
		w.startStream(key, r)
	}
	return w.streams[key]
}

// startStream starts a stream, in place of the one of another version. It is called with the mutex.
func (w *Watches) startStream(key scope, r selector.Resource) {
	s := newStream(w, key, r, w.streams[key])
	w.streams[key] = s
	if !w.ended {
		w.running.Go(func() { s.run(w.lifetime) })
	}
}

// endStream forgets a stream, and all children that it has shown.
func (w *Watches) endStream(s *Stream) {
	w.mu.Lock()
	delete(w.streams, s.scope)
	w.mu.Unlock()
	w.Replace(s.covers, nil, "", false)
	s.listed.note()
}

// Statuses returns the states of the watches.
func (w *Watches) Statuses() (all []watch.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.streams {
		all = append(all, s.status())
	}
	return all
}

// resolveAgain finds the resource of a stream again, because the server does not know it. If there is
// another one, because the definition has other versions now, a stream of that takes over. If there
// is none, there are no children either. It reports whether the stream ends.
func (w *Watches) resolveAgain(ctx context.Context, s *Stream) (ended bool) {
	ctx, cancel := context.WithTimeout(ctx, w.RequestTimeout)
	defer cancel()
	found, err := w.Resources.FindKindAgain(ctx, s.kind)
	switch {
	case kinds.IsNotServed(err):
		s.attempts.Log.Info("The cluster does not serve the kind of children anymore: they are gone.")
		w.endStream(s)
		return true
	case err != nil || found.GVR() == s.resource.GVR():
		return false
	default:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.startStream(s.scope, found)
		s.attempts.Log.Info("The children are watched in another version.", "version", found.Version)
		return true
	}
}

package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// ChildStream is a watch of the children of one kind, in one version: only of objects with the label
// of their owner. If the version is no longer served, the stream of another one takes over, and if the
// kind is gone, so are its children.
type ChildStream struct {
	*stream[*unstructured.Unstructured, shownChildren]
	scope    childScope
	resource selector.Resource
}

// childScope identifies a watch of children: of a kind, in a namespace or in all.
type childScope struct {
	kind      schema.GroupKind
	namespace string
}

// covers reports whether the watch shows a child.
func (s childScope) covers(key convergence.ChildKey) bool {
	return key.GroupKind == s.kind && (s.namespace == "" || s.namespace == key.Namespace)
}

// shownChildren passes on what a stream shows. There is no copy of a child: only the consumer keeps
// what it needs.
type shownChildren struct {
	consumer Consumer
	scope    childScope
}

var _ store[*unstructured.Unstructured] = shownChildren{}

// hasNewer returns false, because the consumer compares the versions that it is shown.
func (c shownChildren) hasNewer(*unstructured.Unstructured) bool { return false }

func (c shownChildren) put(now *unstructured.Unstructured) { c.consumer.ObserveChild(now, false) }

func (c shownChildren) remove(last *unstructured.Unstructured) { c.consumer.ObserveChild(last, true) }

func (c shownChildren) replace(all []*unstructured.Unstructured, version string, another bool) {
	c.consumer.ReplaceChildren(c.scope.covers, all, version, another)
}

// WatchChildren begins to watch the children in some places, unless these are watched already, and
// returns their streams. A place without a namespace is in the given one, which is that of the parent.
// A kind that is no longer served has no children.
func (w *Watcher) WatchChildren(ctx context.Context, namespace string, places convergence.Places) ([]*ChildStream, error) {
	var streams []*ChildStream
	for place := range places {
		resource, err := w.Kinds.FindKind(ctx, place.GroupKind)
		if IsNotServed(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		scope := childScope{kind: resource.GVK().GroupKind(), namespace: place.Namespace}
		switch {
		case len(w.Settings.Scope.Namespaces) == 0 || place.Namespace == convergence.NoNamespace:
			scope.namespace = metav1.NamespaceAll // unless the operator is restricted to some
		case place.Namespace == "":
			scope.namespace = namespace
		}
		w.mu.Lock()
		if w.children[scope] == nil {
			w.startChildStream(scope, resource)
		}
		streams = append(streams, w.children[scope])
		w.mu.Unlock()
	}
	return streams, nil
}

// startChildStream starts a stream, in place of the one of another version. It is called with the
// mutex. Handlers can ask for streams until the end of their grace period, when none starts anymore.
func (w *Watcher) startChildStream(scope childScope, r selector.Resource) {
	s := &ChildStream{scope: scope, resource: r, stream: newStream(scope.namespace, w.shown.share(nil), shownChildren{w.Consumer, scope})}
	former := w.children[scope]
	if former != nil {
		s.listed = former.listed
	}
	w.children[scope] = s
	w.Metrics.Watching(r.String(), false)
	s.attempts = attempts{
		log: w.Logger.WithValues("resource", r.String(), "namespace", scope.namespace), metrics: w.Metrics, resource: r.String(), messages: &aboutChildren,
	}
	if w.ended {
		return
	}
	ctx := w.lifetime
	client := w.cluster.Resource(r.GVR()).Namespace(scope.namespace)
	narrow := func(options *metav1.ListOptions) {
		options.LabelSelector = convergence.OwnerLabel
		s.share.Narrow(options)
	}
	source := relist.NewSource(client, w.Settings.Networking.RequestTimeout, w.Settings.Watching, narrow, s.attempts.record)
	source.Interrupted = s.attempts.interrupted
	if s.share != nil {
		s.interrupt = source.Interrupt
		s.refresh = source.Refresh
	}
	w.running.Go(func() {
		s.run(ctx, w.Settings.Watching, source, &unstructured.Unstructured{}, func() bool {
			return mayBeRemoved(s.attempts.lastError()) && w.resolveAgain(ctx, s)
		})
	})
}

// resolveAgain finds the resource of a stream again, because the server does not know it. If there is
// another one, because the definition has other versions now, a stream of that takes over. If there
// is none, there are no children either. It reports whether the stream ends.
func (w *Watcher) resolveAgain(ctx context.Context, s *ChildStream) (ended bool) {
	ctx, cancel := context.WithTimeout(ctx, w.Settings.Networking.RequestTimeout)
	defer cancel()
	found, err := w.Kinds.FindKindAgain(ctx, s.scope.kind)
	switch {
	case IsNotServed(err):
		s.attempts.log.Info("The cluster does not serve the kind of children anymore: they are gone.")
		w.mu.Lock()
		delete(w.children, s.scope)
		w.mu.Unlock()
		s.kept.replace(nil, "", false)
		s.listed.set()
		return true
	case err != nil || found.GVR() == s.resource.GVR():
		return false
	default:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.startChildStream(s.scope, found)
		s.attempts.log.Info("The children are watched in another version.", "version", found.Version)
		return true
	}
}

// childListTimeout is how long a call waits for the first list of a watch before it fails with the
// reason why there is none.
const childListTimeout = 30 * time.Second

// ErrNotAwaited is the error of a call that does not wait for the first list any longer.
var ErrNotAwaited = errors.New("the children are not listed yet, and the operator is stopping")

// Wait waits for the first list. It returns ErrNotAwaited when the channel is closed before.
func (s *ChildStream) Wait(ctx context.Context, stopping <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, childListTimeout)
	defer cancel()
	select {
	case <-s.Listed():
		return nil
	case <-stopping:
		return ErrNotAwaited
	case <-ctx.Done():
		err := s.attempts.lastError()
		if err == nil {
			err = ctx.Err()
		}
		return fmt.Errorf("the children of the kind %s cannot be watched, so none was changed: %w", s.scope.kind, err)
	}
}

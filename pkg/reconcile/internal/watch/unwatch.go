package watch

import (
	"context"
	"sync"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// unwatchNamespace stops the stream of a namespace that was removed.
func (w *Watcher) unwatchNamespace(ctx context.Context, r *Resource, s *Stream) {
	r.streams.remove(s.namespace)
	w.stopStreams(ctx, stoppingStream(r, s.namespace), []*Stream{s}, func() {
		w.Consumer.Forget(ctx, r, object.StreamKey{Resource: r.Name, Namespace: s.namespace})
	})
	w.log(r).V(1).Info("The objects are not watched anymore.", "namespace", s.namespace)
}

// unwatchResource stops all streams of a resource that was removed or has changed.
func (w *Watcher) unwatchResource(ctx context.Context, r *Resource) {
	delete(w.active, r.Name)
	var all []*Stream
	for namespace, s := range r.streams.all() {
		all = append(all, s)
		r.streams.remove(namespace)
	}
	w.stopStreams(ctx, stoppingResource(r.Resource), all, func() {
		w.Consumer.Forget(ctx, r, object.StreamKey{Resource: r.Name})
	})
	w.log(r).Info("A resource is not watched anymore.")
}

// stopStreams stops streams, and cleans up after their last events. When the operator stops,
// it keeps everything, because daemons may still use it.
func (w *Watcher) stopStreams(ctx context.Context, key string, all []*Stream, clean func()) {
	w.stopping.add(key)
	for _, s := range all {
		s.cancel()
	}
	w.running.Go(func() {
		for _, s := range all {
			<-s.ended
		}
		if ctx.Err() == nil {
			clean()
		}
		w.stopping.remove(key)
		w.reapply.send() // waiting resources can start now
	})
}

// stopping contains the resources and streams that are being stopped. It is safe for
// concurrent use.
type stopping struct {
	mu   sync.Mutex
	keys map[string]struct{}
}

func (s *stopping) add(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = map[string]struct{}{}
	}
	s.keys[key] = struct{}{}
}

func (s *stopping) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, key)
}

func (s *stopping) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.keys[key]
	return found
}

// stoppingResource is the key for all versions of a resource.
func stoppingResource(r selector.Resource) string { return r.GVR().GroupResource().String() }

func stoppingStream(r *Resource, namespace string) string { return r.Name + "/" + namespace }

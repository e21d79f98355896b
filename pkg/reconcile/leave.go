package reconcile

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// leave stops the watch of a namespace that is gone.
func (o *orchestrator) leave(ctx context.Context, s *served, w *stream) {
	s.streams.remove(w.namespace)
	o.depart(ctx, streamLeaving(s, w.namespace), []*stream{w}, func() {
		o.vacate(s, object.StreamKey{Resource: s.name, Namespace: w.namespace})
	})
	o.log(s).V(1).Info("The objects are not watched any longer.", "namespace", w.namespace)
}

// retire stops all watches of a resource that is not served any longer, or not as
// it was.
func (o *orchestrator) retire(ctx context.Context, s *served) {
	delete(o.active, s.name)
	var watches []*stream
	for namespace, w := range s.streams.all() {
		watches = append(watches, w)
		s.streams.remove(namespace)
	}
	o.depart(ctx, resourceLeaving(discovery.SelectedResource{Resource: s.Resource}), watches, func() {
		o.vacate(s, object.StreamKey{Resource: s.name})
		if s.indexer != nil {
			s.indexer.Close()
		}
		o.vacated(ctx, s)
	})
	o.log(s).Info("A resource is not watched any longer.")
}

// depart ends watches, and cleans up behind them when they tell of nothing any
// more. When the operator stops, everything stays as it is: daemons may still be
// at work with it.
func (o *orchestrator) depart(ctx context.Context, key string, watches []*stream, clean func()) {
	o.mu.Lock()
	o.leaving[key] = struct{}{}
	o.mu.Unlock()
	for _, w := range watches {
		w.cancel()
	}
	o.running.Go(func() {
		for _, w := range watches {
			<-w.ended
		}
		if ctx.Err() == nil {
			clean()
		}
		o.mu.Lock()
		delete(o.leaving, key)
		o.mu.Unlock()
		o.changed.send() // what waits for that can come now
	})
}

func (o *orchestrator) isLeaving(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, leaving := o.leaving[key]
	return leaving
}

// resourceLeaving is the same for all versions of a resource.
func resourceLeaving(found discovery.SelectedResource) string {
	return found.GVR().GroupResource().String()
}

func streamLeaving(s *served, namespace string) string { return s.name + "/" + namespace }

func (o *orchestrator) log(s *served) logr.Logger { return o.Logger.WithValues("resource", s.name) }

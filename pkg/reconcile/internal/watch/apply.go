package watch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// indexTimeout limits how long handlers wait until the objects of new streams are in the indices,
// for all of them together.
const indexTimeout = 10 * time.Second

// apply starts and stops streams to match the wanted ones. The first result contains errors
// about resources that cannot be watched.
func (w *Watcher) apply(ctx context.Context) error {
	w.scope = w.namespacesInScope()
	if w.Scoped != nil {
		w.Scoped(slices.Clone(w.scope))
	}
	for name, r := range w.active {
		i := slices.IndexFunc(w.wanted, func(found discovery.SelectedResource) bool { return found.String() == name })
		if i < 0 || !r.isSame(w.wanted[i]) {
			w.unwatchResource(ctx, r)
		}
	}
	var problems []error
	for _, found := range w.wanted {
		problems = append(problems, w.watchResource(ctx, found))
	}
	return errors.Join(problems...)
}

// watchResource makes sure that a resource has its streams.
func (w *Watcher) watchResource(ctx context.Context, found discovery.SelectedResource) error {
	r := w.active[found.String()]
	if r == nil && w.stopping.has(stoppingResource(found.Resource)) {
		return nil // it starts after the previous one has stopped
	}
	if r == nil {
		var err error
		r, err = w.Consumer.SetUp(ctx, found)
		if err != nil {
			return err
		}
		r.rediscover = w.rediscover
		w.active[r.Name] = r
		w.log(r).Info("Watching a resource.")
	}
	return w.syncStreams(ctx, r)
}

// syncStreams starts and stops the streams of a resource for the namespaces in the scope.
func (w *Watcher) syncStreams(ctx context.Context, r *Resource) error {
	wanted := w.namespacesOf(r)
	for namespace, s := range r.streams.all() {
		if !slices.Contains(wanted, namespace) {
			w.unwatchNamespace(ctx, r, s)
		}
	}
	for _, namespace := range wanted {
		if r.streams.all()[namespace] != nil || w.stopping.has(stoppingStream(r, namespace)) {
			continue
		}
		w.start(r, w.newStream(ctx, r, namespace))
	}
	return nil
}

// start starts a stream. If handlers are already being called, they must wait until its
// objects are in the indices.
func (w *Watcher) start(r *Resource, s *Stream) {
	if r.FillsIndices && w.isListed() {
		w.indexed.hold(s.Listed(), s.stopped, s.refused, indexTimeout, func() {
			w.log(r).Info("The objects could not be listed in time; handlers are called before the objects are in the indices.", "namespace", s.namespace)
		})
	}
	r.Add(s)
	w.running.Go(s.run)
	w.log(r).V(1).Info("The objects are listed and watched.", "namespace", s.namespace)
}

// namespacesOf returns the namespaces to watch for a resource.
func (w *Watcher) namespacesOf(r *Resource) []string {
	if !r.Namespaced || len(w.Settings.Scope.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return w.scope
}

func (w *Watcher) log(r *Resource) logr.Logger { return w.Logger.WithValues("resource", r.Name) }

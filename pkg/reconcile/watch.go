package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/kopf/handler"
	"github.com/kopf-go/kopf/pkg/kopf/object"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// discoveryPatience is how long a resource is waited for when an operator starts.
const discoveryPatience = 10 * time.Second

// Watch finds the resources of the handlers and keeps their objects in memory,
// until the context is done.
func (e *Engine) Watch(ctx context.Context) error {
	giveBack, err := e.claim()
	if err != nil {
		return err
	}
	defer giveBack()
	defer e.stopIndexing()
	if err := e.discover(ctx); err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.listing.Store(true)
	var synced []cache.InformerSynced
	for _, s := range e.served {
		for _, informer := range s.informers {
			running.Go(func() { informer.RunWithContext(ctx) })
		}
		synced = append(synced, s.synced()...)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil // stopped meanwhile
	}
	e.Logger.Info("The operator is running.", "resources", slices.Sorted(maps.Keys(e.served)),
		"namespaces", e.Settings.Scope.Namespaces, "handlers", len(e.Handlers))
	close(e.watching)
	<-ctx.Done()
	e.Logger.Info("The operator is stopping.")
	return nil
}

// discover finds the resources of the selectors, and sets each of them up with
// its handlers and its informers.
func (e *Engine) discover(ctx context.Context) error {
	resolution, err := e.resolve(ctx)
	if err != nil {
		return fmt.Errorf("the resources of the cluster cannot be listed: %w", err)
	}
	for _, warning := range resolution.Warnings {
		e.Logger.Error(warning, "Some handlers will not be called until this is corrected and the operator is restarted.")
	}
	e.served = map[string]*served{}
	var problems []error
	for _, found := range resolution.Served {
		problems = append(problems, e.setUp(ctx, found))
	}
	return errors.Join(problems...)
}

// resolve asks the cluster what the selectors mean. A resource definition that
// was installed a moment ago takes the API server some seconds to serve, hence
// the patience with what is missing.
func (e *Engine) resolve(ctx context.Context) (discovery.Resolution, error) {
	var resolution discovery.Resolution
	var failure error
	complete := func(context.Context) (bool, error) {
		var present discovery.Snapshot
		present, failure = e.Resources.Resources(ctx)
		if failure == nil {
			resolution = discovery.Resolve(e.Handlers.Selectors(), present)
		}
		complete := failure == nil && len(resolution.Warnings) == 0
		if _, said := e.said.LoadOrStore("waiting", true); !complete && !said {
			e.Logger.Info("Waiting for the cluster to serve what the handlers are declared for.", "patience", discoveryPatience.String(),
				"problem", errors.Join(append(resolution.Warnings, failure)...).Error())
		}
		return complete, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, time.Second, discoveryPatience, true, complete); err != nil && !wait.Interrupted(err) {
		return resolution, err
	}
	return resolution, failure
}

// setUp sets a resource up with those handlers whose selectors have found it.
func (e *Engine) setUp(ctx context.Context, found discovery.Served) error {
	handlers := e.Handlers.Where(func(d *handler.Declaration) bool { return slices.Contains(found.Selectors, d.Selector) })
	if err := handlers.Conflicts(); err != nil {
		return fmt.Errorf("%s: %w", found, err)
	}
	api, err := kube.New(e.REST, e.HTTP, found.Resource)
	if err != nil {
		return err
	}
	s := newServed(found.Resource, handlers, api)
	s.indexer = e.newIndexer(s, handlers)
	e.served[s.name] = s
	return e.inform(ctx, s)
}

// inform gives a resource an informer for every namespace.
func (e *Engine) inform(ctx context.Context, s *served) error {
	for _, namespace := range e.namespaces(s) {
		informer := cache.NewSharedIndexInformerWithOptions(s.api.ListWatch(namespace), &object.Snapshot{},
			cache.SharedIndexInformerOptions{ObjectDescription: s.name})
		listening, err := informer.AddEventHandler(e.listener(ctx, s))
		if err != nil {
			return fmt.Errorf("%s cannot be watched: %w", s.name, err)
		}
		s.listening = append(s.listening, listening)
		s.informers = append(s.informers, informer)
	}
	return nil
}

// namespaces are those to be watched for a resource. One that is named twice is
// watched once.
func (e *Engine) namespaces(s *served) []string {
	namespaces := slices.Compact(slices.Sorted(slices.Values(e.Settings.Scope.Namespaces)))
	if !s.Namespaced || len(namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return namespaces
}

// listener is the only one on an informer, so that what it does is in order:
// first the indices, then the event line, then the queue.
func (e *Engine) listener(ctx context.Context, s *served) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(item any, listed bool) {
			kind := watch.Added
			if listed {
				kind = "" // it was there before
				e.memories.of(s.key(snapshotOf(item))).initial.Store(true)
			}
			e.happened(ctx, s, occurrence{kind, snapshotOf(item)})
		},
		UpdateFunc: func(before, after any) {
			old, now := snapshotOf(before), snapshotOf(after)
			switch {
			case old.GetUID() != now.GetUID():
				// Deleted and re-created while the watch was interrupted.
				e.happened(ctx, s, occurrence{watch.Deleted, old})
				e.happened(ctx, s, occurrence{watch.Added, now})
			case old.GetResourceVersion() != now.GetResourceVersion():
				e.happened(ctx, s, occurrence{watch.Modified, now})
			}
		},
		DeleteFunc: func(item any) {
			if unknown, ok := item.(cache.DeletedFinalStateUnknown); ok {
				item = unknown.Obj // the deletion itself was missed
			}
			if last := snapshotOf(item); last != nil {
				e.happened(ctx, s, occurrence{watch.Deleted, last})
			}
		},
	}
}

func (e *Engine) happened(ctx context.Context, s *served, o occurrence) {
	key := s.key(o.snapshot)
	if s.indexer != nil {
		e.index(ctx, s, key, o)
	}
	if s.indexed() {
		return
	}
	if len(s.events) > 0 {
		e.lines.push(key, o)
	}
	if o.kind == watch.Deleted {
		e.dismiss(key)
	}
	e.enqueue(key)
}

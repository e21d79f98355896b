package reconcile

import (
	"context"
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// Watch finds the resources of the handlers and keeps their objects in memory,
// until the context is done: of all resources and namespaces that are there, from
// when they appear until they are gone.
//
// Specification: Scopes; Resource specification.
func (e *Engine) Watch(ctx context.Context) error {
	giveBack, err := e.claim()
	if err != nil {
		return err
	}
	defer giveBack()
	defer e.stopIndexing()
	o := &orchestrator{
		Engine: e, pace: discovery.ScanSchedule{MaxInterval: e.Settings.Scanning.Interval},
		active: map[string]*served{}, leaving: map[string]struct{}{},
	}
	defer o.running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := o.begin(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	resources, namespaces := slices.Sorted(maps.Keys(o.active)), e.Settings.Scope.Namespaces
	o.running.Go(func() { o.follow(ctx) })
	if !e.listed(ctx) {
		return nil // stopped meanwhile
	}
	e.Logger.Info("The operator is running.", "resources", resources, "namespaces", namespaces, "handlers", e.declared)
	close(e.watching)
	<-ctx.Done()
	e.Logger.Info("The operator is stopping.")
	return nil
}

// listed waits until all objects are known that were there at the beginning. What
// is not watched any longer is not waited for.
func (e *Engine) listed(ctx context.Context) bool {
	for _, s := range e.served.all() {
		for _, w := range s.streams.all() {
			select {
			case <-w.listed():
			case <-w.left:
			case <-ctx.Done():
			}
		}
	}
	return ctx.Err() == nil
}

// ready tells whether handlers may be called already.
func (e *Engine) ready() bool {
	select {
	case <-e.watching:
		return true
	default:
		return false
	}
}

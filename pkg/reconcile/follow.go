package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

const (
	// reachPatience is how long the API server is waited for when an operator
	// starts: it may be about to start, too.
	reachPatience = 10 * time.Second
	// indexPatience is how long handlers wait for the objects of a resource that
	// has appeared to get into the indices; longer takes only what is not permitted.
	indexPatience = 10 * time.Second
)

// signal says that something has happened, however often.
type signal chan struct{}

func (s signal) send() {
	select {
	case s <- struct{}{}:
	default: // it is known already
	}
}

// begin starts what is to be watched at the beginning. Mistakes in it are errors;
// what is missing is not.
func (o *orchestrator) begin(ctx context.Context) error {
	var failure error
	reach := func(context.Context) (bool, error) { // whose end would hide what is wrong
		failure = o.look(ctx)
		return failure == nil, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, time.Second, reachPatience, true, reach); err != nil {
		return fmt.Errorf("the resources of the cluster cannot be listed: %w", errors.Join(failure, ctx.Err()))
	}
	if o.observe(ctx); o.definitions != nil {
		if err := o.look(ctx); err != nil { // at what has come before they were watched
			o.settled = false
		}
	}
	o.pace.FirstScanned(o.settled)
	o.listing.Store(true)
	return o.apply(ctx)
}

// follow keeps the watches right until the context is done.
func (o *orchestrator) follow(ctx context.Context) {
	for {
		timer, due := o.alarm()
		select {
		case <-ctx.Done():
		case <-o.hurry:
			o.pace.ScanSoon()
		case <-o.changed:
			o.complain("", o.apply(ctx))
		case <-due:
			o.observe(ctx)
			o.complain("The cluster does not tell its resources; this is tried again.", o.look(ctx))
			o.complain("", o.apply(ctx))
			o.pace.Scanned(o.settled)
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// alarm rings when the cluster is to be looked at.
func (o *orchestrator) alarm() (timer *time.Timer, due <-chan time.Time) {
	pause, wanted := o.pace.Next()
	timer = time.NewTimer(pause)
	if !wanted || o.Settings.Scanning.Disabled {
		timer.Stop()
		return timer, nil
	}
	return timer, timer.C
}

// look asks the cluster what the selectors mean.
func (o *orchestrator) look(ctx context.Context) error {
	o.settled = false
	ctx, cancel := context.WithTimeout(ctx, o.Settings.Networking.RequestTimeout)
	defer cancel()
	present, err := o.Resources.Resources(ctx)
	if err != nil {
		return err
	}
	if o.Discovered != nil {
		o.Discovered(present)
	}
	resolution := discovery.Resolve(o.Handlers.Selectors(), present)
	o.tell(resolution.Warnings)
	o.wanted, o.settled = o.tracker.Update(resolution, present)
	return nil
}

// observe begins to watch what tells of changes, as far as that is wanted and
// permitted. What is not may be later.
func (o *orchestrator) observe(ctx context.Context) {
	if o.Settings.Scanning.Disabled {
		return
	}
	if o.definitions == nil {
		o.definitions = o.names(ctx, discovery.CustomResourceDefinitions, o.hurry,
			"Custom resource definitions may not be watched: what is installed, changed or removed is noticed late. "+
				"Permit to list and watch customresourcedefinitions.apiextensions.k8s.io, or disable the scanning.")
	}
	if o.namespaces == nil && len(o.patterns()) > 0 {
		o.namespaces = o.names(ctx, discovery.Namespaces, o.changed,
			"Namespaces may not be watched: their patterns select none, and only those that are named are served. "+
				"Permit to list and watch namespaces, or name them.")
	}
	o.pace.Polling = o.definitions == nil || (o.namespaces == nil && len(o.patterns()) > 0)
}

// names follows the names of a resource; nil if that is not permitted.
func (o *orchestrator) names(ctx context.Context, of schema.GroupVersionResource, changed signal, refusal string) *discovery.NameInformer {
	names, err := discovery.NewNameInformer(o.REST, o.HTTP, of, changed.send, func(err error) {
		if once := err.Error(); o.once(once) {
			o.Logger.Error(err, "The changes of "+of.Resource+" are not known now; this is tried again.")
		}
	})
	if err != nil {
		o.complain("", err)
		return nil
	}
	if permitted, err := names.CheckAccess(ctx); err == nil && !permitted {
		if o.once(refusal) {
			o.Logger.Info(refusal)
		}
		return nil
	}
	o.running.Go(func() { names.Run(ctx) })
	select {
	case <-names.Synced():
	case <-time.After(reachPatience):
	case <-ctx.Done():
	}
	return names
}

// once tells whether something is to be said: the first time for an operator.
func (e *Engine) once(what string) bool {
	_, said := e.said.LoadOrStore(what, true)
	return !said
}

// patterns are those of the scope.
func (o *orchestrator) patterns() selector.Namespaces {
	return selector.Namespaces(o.Settings.Scope.Namespaces).Patterns()
}

// namespacesInScope are those to be watched: those that are named, be they there
// or not, and those that are there and fit a pattern.
func (o *orchestrator) namespacesInScope() []string {
	found := selector.Namespaces(o.Settings.Scope.Namespaces).Names()
	if patterns := o.patterns(); o.namespaces != nil {
		for _, name := range o.namespaces.List() {
			if patterns.Match(name) {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// namespacesOf are those to be watched for a resource.
func (o *orchestrator) namespacesOf(s *served) []string {
	if !s.Namespaced || len(o.Settings.Scope.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return o.scope
}

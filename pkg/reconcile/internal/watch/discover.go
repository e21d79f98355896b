package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// startTimeout limits how long the operator waits at its start for an API server that responds with
// errors, and for the lists of definitions and namespaces.
const startTimeout = 10 * time.Second

// missingTimeout is when a selector that has matched nothing since the start is reported
// again, in more detail.
const missingTimeout = time.Minute

// signal wakes one receiver, however often it is sent.
type signal chan struct{}

func (s signal) send() {
	select {
	case s <- struct{}{}:
	default: // already signaled
	}
}

// begin starts the first streams. It returns mistakes in declarations as errors, but not
// missing resources.
func (w *Watcher) begin(ctx context.Context) error {
	if err := w.reach(ctx); err != nil {
		return fmt.Errorf("the resources of the cluster cannot be listed: %w", err)
	}
	w.watchForChanges(ctx)
	if w.definitions != nil {
		if err := w.discover(ctx); err != nil { // finds changes from before the watches
			w.complete = false
		}
	}
	w.schedule.FirstScanned(w.complete)
	w.begun.Store(true)
	return w.apply(ctx)
}

// reach waits for the first answer of the API server, which may also be starting.
func (w *Watcher) reach(ctx context.Context) error {
	began := time.Now()
	for {
		failure := w.discover(ctx)
		patience := startTimeout
		if isUnavailable(failure) {
			patience = w.Settings.Networking.StartTimeout
		}
		switch {
		case failure == nil:
			return nil
		case time.Since(began) >= patience:
			return failure
		case w.problems.reported.Changed("start", ""):
			w.Logger.Info("No handler is called yet: the operator waits for the API server, which does not answer.", "reason", failure.Error(), "timeout", patience.String())
		}
		if !sleep.For(ctx, time.Second) {
			return errors.Join(failure, ctx.Err())
		}
	}
}

// isUnavailable reports whether an error is not an answer of an API server that works.
func isUnavailable(err error) bool {
	return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

// followChanges updates the streams after changes until the context is done.
func (w *Watcher) followChanges(ctx context.Context) {
	late := time.NewTimer(missingTimeout)
	defer late.Stop()
	for {
		timer, due := w.nextDiscovery()
		select {
		case <-ctx.Done():
		case <-w.rediscover:
			w.schedule.ScanSoon()
		case <-w.reapply:
			w.problems.reportOnce("", w.apply(ctx))
		case <-due:
			w.watchForChanges(ctx)
			w.problems.reportOnce("The resources of the cluster cannot be listed; this is retried.", w.discover(ctx))
			w.problems.reportOnce("", w.apply(ctx))
			w.schedule.Scanned(w.complete)
		case <-late.C:
			w.problems.reportMissing()
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// nextDiscovery returns a channel that is ready when the next discovery is due, or nil if
// none is.
func (w *Watcher) nextDiscovery() (timer *time.Timer, due <-chan time.Time) {
	pause, wanted := w.schedule.Next()
	timer = time.NewTimer(pause)
	if !wanted || w.Settings.Scanning.Disabled {
		timer.Stop()
		return timer, nil
	}
	return timer, timer.C
}

// discover finds the resources that the selectors select.
func (w *Watcher) discover(ctx context.Context) error {
	w.complete = false
	ctx, cancel := context.WithTimeout(ctx, w.Settings.Networking.RequestTimeout)
	defer cancel()
	present, err := w.Source.Resources(ctx)
	if err != nil {
		return err
	}
	if w.Discovered != nil {
		w.Discovered(present)
	}
	resolution := withoutUnpatchable(discovery.Resolve(w.Selectors, present), w.Consumer.NeedsPatch).InOneVersion(w.Consumer.NeedsPatch)
	w.problems.reportWarnings(resolution.Warnings)
	w.wanted, w.complete = w.tracker.Update(resolution, present)
	return nil
}

// withoutUnpatchable removes the resources that handlers cannot write to, and adds warnings
// about them.
func withoutUnpatchable(r discovery.Resolution, needsPatch func(discovery.SelectedResource) bool) discovery.Resolution {
	r.Resources = slices.DeleteFunc(r.Resources, func(found discovery.SelectedResource) bool {
		unpatchable := !found.Can("patch") && !discovery.IsTerminating(found.Resource) && needsPatch(found)
		if unpatchable {
			r.Warnings = append(r.Warnings, &discovery.UnpatchableError{Resource: found})
		}
		return unpatchable
	})
	return r
}

// watchForChanges starts to watch definitions and namespaces if wanted and permitted. It
// retries later without permission.
func (w *Watcher) watchForChanges(ctx context.Context) {
	if w.Settings.Scanning.Disabled {
		return
	}
	if w.definitions == nil {
		w.definitions = w.watchNames(ctx, discovery.CustomResourceDefinitions, w.rediscover,
			"Custom resource definitions may not be watched: the operator notices installed, changed, and removed ones late. "+
				"Grant the permissions to list and watch customresourcedefinitions.apiextensions.k8s.io, or disable the scanning.")
	}
	if w.namespaces == nil && len(w.patterns()) > 0 {
		w.namespaces = w.watchNames(ctx, discovery.Namespaces, w.reapply,
			"Namespaces may not be watched: patterns select none, and only the named namespaces are watched. "+
				"Grant the permissions to list and watch namespaces, or name them.")
	}
	w.schedule.Polling = w.definitions == nil || (w.namespaces == nil && len(w.patterns()) > 0)
}

// watchNames watches the names of a resource. It returns nil without permission.
func (w *Watcher) watchNames(ctx context.Context, of schema.GroupVersionResource, changed signal, forbidden string) *discovery.NameInformer {
	names, err := discovery.NewNameInformer(w.REST, w.HTTP, w.Settings, of, changed.send, func(err error) {
		w.problems.reportOnce("The changes of "+of.Resource+" cannot be watched now; this is retried.", err)
	})
	if err != nil {
		w.problems.reportOnce("The changes of "+of.Resource+" cannot be watched.", err)
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, w.Settings.Networking.RequestTimeout)
	defer cancel()
	if permitted, err := names.CheckAccess(asking); err == nil && !permitted {
		if w.problems.reported.Changed(forbidden, "") {
			w.Logger.Info(forbidden)
		}
		return nil
	}
	w.problems.reported.Clear(forbidden)
	w.running.Go(func() { names.Run(ctx) })
	select {
	case <-names.Synced():
	case <-time.After(startTimeout):
	case <-ctx.Done():
	}
	return names
}

// patterns returns the patterns of the scope.
func (w *Watcher) patterns() selector.Namespaces {
	return selector.Namespaces(w.Settings.Scope.Namespaces).Patterns()
}

// namespacesInScope returns the namespaces to watch: the named ones, whether they exist or
// not, and the existing ones that match a pattern.
func (w *Watcher) namespacesInScope() []string {
	found := selector.Namespaces(w.Settings.Scope.Namespaces).Names()
	if patterns := w.patterns(); w.namespaces != nil {
		for _, name := range w.namespaces.List() {
			if patterns.Match(name) {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

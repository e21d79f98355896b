package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// State is in one word what the handlers of an object have come to. Explain says why.
type State string

// The states. The first one that applies is that of an object, except that States begins with what is wrong.
const (
	Outside     State = "outside"     // it is in a namespace that the operator does not serve
	Unknown     State = "unknown"     // it cannot be judged
	Held        State = "held"        // its deletion is held, because a deletion handler has failed for good
	Suspended   State = "suspended"   // by a request
	Failed      State = "failed"      // a handler has failed for good
	Misfit      State = "misfit"      // it does not fit the Go type of a handler
	Deleting    State = "deleting"    // it is being deleted, and does not wait for this operator
	Waiting     State = "waiting"     // a handler waits for its next attempt, or for a rollout
	InProgress  State = "in progress" // the handling of what has happened to it has begun
	Due         State = "due"         // a handler is called as soon as an operator runs
	Undecidable State = "undecidable" // a filter cannot be evaluated here
	Background  State = "background"  // it has no handlers of changes
	LeftAlone   State = "left alone"  // no handler of changes applies to it
	Handled     State = "handled"     // nothing has happened since it was handled
)

// States returns all states, what is wrong first.
func States() []State {
	return []State{Held, Failed, Misfit, Unknown, Waiting, Suspended, Deleting, InProgress, Due, Undecidable, Handled, Background, LeftAlone, Outside}
}

// Summary is the state of an object among many.
type Summary struct {
	State State
	// Since is when the state began, as far as the object shows it.
	Since time.Time
	// Until is when the state can end without a change of the object; zero for never.
	Until time.Time
}

// WatchedResource is a resource whose objects the operator watches.
type WatchedResource struct {
	discovery.SelectedResource

	// Name is that of the resource, as for kubectl.
	Name string
}

// Watched returns the resources whose objects the operator watches. A resource with handlers for several versions is
// there once, as for Explain.
func (c *Cluster) Watched() []WatchedResource {
	var all []WatchedResource
	for _, found := range c.resolved.Resources {
		name := nameOf(found.Resource)
		if !slices.ContainsFunc(all, func(known WatchedResource) bool { return known.Name == name }) {
			all = append(all, WatchedResource{found, name})
		}
	}
	return all
}

// API returns the API of the objects of a resource, and the selectors of the operator. It only reads.
func (c *Cluster) API(of WatchedResource, namespace string) (dynamic.ResourceInterface, metav1.ListOptions) {
	selection, _ := c.selection(of.SelectedResource)
	return c.apiOf(of.SelectedResource, namespace), selection
}

// Summarize returns the state of an object, without looking at anything else. It is safe for concurrent use.
func (c *Cluster) Summarize(ctx context.Context, of WatchedResource, obj *unstructured.Unstructured) Summary {
	summary := Summary{State: Outside, Since: lastWritten(obj)}
	if len(c.outsideScope(obj.GetNamespace())) > 0 {
		return summary
	}
	if obj.GetKind() == "" {
		obj.SetGroupVersionKind(of.GVK())
	}
	var s subject
	err := handler.WithRecover(func() (err error) { // a running operator must survive what it cannot judge
		s, err = c.subject(ctx, of.SelectedResource, obj)
		return err
	})
	if err != nil {
		summary.State = Unknown
		return summary
	}
	summary.State = s.summary()
	begun, ended, next := s.times()
	switch summary.State {
	case Held, Failed:
		summary.Since = cmp.Or(ended, summary.Since)
	case Waiting:
		summary.Since = cmp.Or(begun, summary.Since)
		summary.Until = next
	case InProgress:
		summary.Since = cmp.Or(begun, summary.Since)
	case Deleting:
		summary.Since = obj.GetDeletionTimestamp().Time
	case Suspended:
		summary.Until = s.Suspension.Until
	}
	return summary
}

// summary returns the state of the object, by what is said of its handlers.
func (s *subject) summary() State {
	has := map[string]bool{}
	for _, h := range append(s.handlers(), s.subhandlers()...) {
		has[h.State] = true
	}
	switch {
	case s.HeldByFailure != "":
		return Held
	case s.Suspension.Active:
		return Suspended
	case has[string(verdict.Failed)] && !s.isDeleted() || len(s.failedHandlers()) > 0 && s.Reason == cause.NoOp:
		return Failed
	case has[string(verdict.Misfit)]:
		return Misfit
	case isFree(s.Object):
		return Deleting
	case has[string(verdict.Waiting)]:
		return Waiting
	case s.Open:
		return InProgress
	case has[string(verdict.Due)], has[string(verdict.OutOfTurn)]:
		return Due
	case s.hasUndecidable():
		return Undecidable
	case !s.hasChangeHandlers():
		return Background
	case !s.InScope && s.Reason != cause.Delete:
		return LeftAlone
	default:
		return Handled
	}
}

// times returns when the first handler that has not ended was called, when the last one has ended, and when the next attempt
// is.
func (s *subject) times() (begun, ended, next time.Time) {
	for _, r := range s.Records {
		switch {
		case r.Finished():
			if r.Stopped.After(ended) {
				ended = r.Stopped
			}
			continue
		case begun.IsZero(), r.Started.Before(begun):
			begun = r.Started
		}
		if r.Delayed.After(s.now) && (next.IsZero() || r.Delayed.Before(next)) {
			next = r.Delayed
		}
	}
	return begun, ended, next
}

// lastWritten returns when the object was written last.
func lastWritten(obj *unstructured.Unstructured) time.Time {
	last := obj.GetCreationTimestamp().Time
	for _, entry := range obj.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

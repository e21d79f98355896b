package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/inspection"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
)

// ofBackground is about daemons and timers.
func (s *subject) ofBackground(h inspection.Handler) (state, message string) {
	switch {
	case s.isDeleted() && !h.Deleted:
		return "stopped", "is stopped, because the object is being deleted"
	case s.Suspension.Active:
		return string(verdict.Suspended), "is stopped, because the object is suspended"
	case !h.Selected:
		return string(verdict.Mismatched), "does not run for this object"
	case h.Kind == handler.OnTimer && h.Idle > 0:
		return background, fmt.Sprintf("is called while an operator is active, when the object has not changed for %s, unless it has failed for good", duration(h.Idle))
	case h.ScheduleErr != nil:
		return background, fmt.Sprintf("is not called, because its next run is unknown: %v", h.ScheduleErr)
	case h.Schedule != nil:
		timeOf := func(run time.Time) string { return run.In(h.Schedule.Zone).Format("2006-01-02 15:04:05 MST") }
		message = "is called by its schedule while an operator is active, next for " + timeOf(h.NextRun)
		switch last := h.LastRun; {
		case last == nil:
			return background, message
		case last.Success:
			return background, message + "; the run of " + timeOf(last.Started) + " has succeeded"
		default:
			return background, message + "; the run of " + timeOf(last.Started) + " has failed: " + last.Message
		}
	case h.Kind == handler.OnTimer && h.IntervalFunc != nil:
		return background, "is called at an interval that the object determines while an operator is active, unless it has failed for good"
	case h.Kind == handler.OnTimer && h.Interval > 0:
		return background, fmt.Sprintf("is called every %s while an operator is active, unless it has failed for good", duration(h.Interval))
	case h.Kind == handler.OnTimer:
		return background, "is called once after each start of an operator"
	default:
		return background, "runs while an operator is active, until it returns or fails for good" + wokenBy(h)
	}
}

// wokenBy says what wakes a daemon that waits for changes.
func wokenBy(h inspection.Handler) string {
	var by []string
	for _, field := range h.WakeOn {
		by = append(by, field.String())
	}
	for _, children := range h.ChildSelectors() {
		by = append(by, "the children "+children.String())
	}
	if len(by) == 0 {
		return ""
	}
	return "; it is woken by changes of " + strings.Join(by, ", ")
}

// background is the state of daemons and timers. Whether they run now is unknown.
const background = "background"

// ofOthers is about handlers without causes.
func (s *subject) ofOthers(h inspection.Handler) (state, message string) {
	switch r, isOpen := s.Records[h.ID]; {
	case h.Kind == handler.OnIndex:
		return "ready", "puts the object into an index while an operator is running"
	case s.Suspension.Active:
		return string(verdict.Suspended), "is not called, because the object is suspended"
	case h.Kind == handler.OnEvent:
		return "ready", "is called for each watch event of the object"
	case s.isDeleted() && !h.Deleted:
		return "stopped", "is not called, because the object is being deleted"
	case isOpen && r.Delayed.After(s.now):
		return string(verdict.Waiting), "waits until " + s.at(r.Delayed) + attempts(r)
	case isOpen:
		return string(verdict.Due), "will run" + attempts(r)
	case h.Kind == handler.OnDrift && len(h.EnsuredBy) > 0:
		return "ready", "is asked when other clients change children that are returned by " + strings.Join(h.EnsuredBy, ", ")
	case h.Kind == handler.OnDrift:
		return "ready", "is asked when other clients change children of the object"
	default:
		return string(verdict.Untriggered), "is called when a child of the object changes, and once when an operator starts; whether a child has changed meanwhile is not decidable here"
	}
}

// partsOf returns the declarations of the handler of Ensure that a declaration belongs to, or nil.
func (s *subject) partsOf(h inspection.Handler) []inspection.Handler {
	if h.Ensures == nil {
		return nil
	}
	var group []inspection.Handler
	for _, other := range s.Handlers {
		if other.Ensures != nil && other.Top().ID == h.Top().ID {
			group = append(group, other)
		}
	}
	return group
}

// ensured is about one handler of Ensure, which has several declarations.
func (s *subject) ensured(group []inspection.Handler) Handler {
	first := group[0]
	for _, h := range group {
		if h.Undecidable != nil {
			first = h
		}
	}
	if first.Undecidable != nil || !first.OutOfScope.Matches() && !s.isDeleted() {
		said := s.handler(first)
		said.ID = first.Top().ID
		said.Kind = ensureKind
		return said
	}
	said := Handler{ID: first.ID, Kind: ensureKind, DeclaredAt: first.DeclaredAt}
	switch called := s.called(group); {
	case called == nil:
	case called.Kind == handler.OnRestore:
		said.State, said.Message = s.ofOthers(*called)
		purpose := ", to restore what others have changed in its children"
		if len(called.Watched) > 0 {
			purpose += ", or because an index has changed"
		}
		said.Message = beforeError(said.Message, purpose)
		return said
	default:
		said.State, said.Message, said.Todo = s.ofChange(*called)
		if (said.State == string(verdict.Succeeded) || said.State == string(verdict.Failed)) && !s.Suspension.Active && !s.isDeleted() {
			said.Message += "; it is called again when an operator starts, and when another client changes a child"
		}
		return said
	}
	// It has nothing to do.
	const idle = "has nothing to do: nothing has changed since the object was handled; it is called again when an operator starts"
	switch {
	case s.Reason == cause.Free:
		said.State = string(verdict.OtherReason)
		said.Message = "is not called now: the object is being deleted, and Kubernetes deletes the children that it owns"
	case s.Reason == cause.Delete:
		said.State = string(verdict.OtherReason)
		said.Message = "is not called: the object is being deleted, and Kubernetes deletes the children that it owns"
	case s.Suspension.Active:
		said.State = string(verdict.Suspended)
		said.Message = "is not called, because the object is suspended"
	case slices.ContainsFunc(group, s.hasFailedBefore):
		said.State = string(verdict.Failed)
		said.Message = "has failed for good, as the condition Stalled says; it is called again when the object changes, when an operator starts, and when another client changes a child"
		said.Todo = s.toRerun(first.ID)
	case len(first.Watched) > 0:
		said.State = "done"
		said.Message = idle + ", when another client changes a child, and when an index changes that it watches"
	default:
		said.State = "done"
		said.Message = idle + ", and when another client changes a child"
	}
	return said
}

// called returns the declaration for which the handler is called now, or nil. All of them have one id, so
// that a record can be of any: those that take part in the handling come first.
func (s *subject) called(group []inspection.Handler) *inspection.Handler {
	for i, h := range group {
		if h.Kind.IsChange() && h.Selected {
			return &group[i]
		}
	}
	for i, h := range group {
		r, recorded := s.Records[h.ID]
		if recorded && (h.Kind == handler.OnRestore && !s.isDeleted() || h.Kind.IsChange() && r.Purpose == s.Reason) {
			return &group[i]
		}
	}
	return nil
}

// ensureKind is how the answers call a handler of Ensure, which has several kinds.
const ensureKind = "ensure"

// admission says when the API server calls the admission handlers for the object.
func (c *Cluster) admission(found discovery.SelectedResource, s *subject) []Handler {
	var all []Handler
	for _, d := range c.admissionOf(found.Resource) {
		said := Handler{ID: d.ID, Kind: string(d.Kind), DeclaredAt: d.DeclaredAt, State: "onRequest"}
		leftOut, unless := c.reviewed(s.object)
		mismatch, certain := (&handler.Cause{CallContext: handler.CallContext{Body: s.Body}}).ConstantMismatch(d)
		resource := "validatingwebhookconfigurations"
		if d.Kind == handler.OnMutate {
			resource = "mutatingwebhookconfigurations"
		}
		configuration := s.commands.Kubectl("get " + strings.TrimSpace(resource+" "+c.Settings.Admission.Managed) + " -o yaml")
		switch {
		case leftOut != "":
			said.State = string(verdict.Mismatched)
			said.Message = "is not called: " + leftOut
			said.Todo = "serve the namespace, or see what the API server knows: " + configuration
		case !mismatch.Matches():
			said.State = string(verdict.Mismatched)
			said.Message = "is not called for requests that leave the object as it is now: " + s.wants(d, mismatch)
		case !certain:
			said.State = "undecidable"
			said.Message = "is not decidable here: the API server calls it " + requestsOf(d) + unless + ", and a function of its filters decides about each request"
			said.Todo = "send the request as a dry run: kubectl … --dry-run=server"
		default:
			said.Message = "is called by the API server " + requestsOf(d) + unless + ", and at no other time; its filters match the object as it is now"
			said.Todo = "whether the API server knows it: " + configuration
		}
		all = append(all, said)
	}
	return all
}

// reviewed says why the webhook configuration of the operator leaves the object out, or else
// when it would.
func (p Program) reviewed(obj *unstructured.Unstructured) (leftOut, unless string) {
	namespace := obj.GetNamespace()
	if obj.GetKind() == "Namespace" && obj.GetAPIVersion() == "v1" {
		namespace = obj.GetName()
	}
	if namespace == "" {
		return "", ""
	}
	served := configurations.OptionsFor(p.Settings, "", types.NamespacedName{}).Namespaces
	switch {
	case len(served) > 0 && !slices.Contains(served, namespace):
		return fmt.Sprintf("the webhook configuration of the operator is for the namespaces %s alone", strings.Join(served, ", ")), ""
	case len(served) == 0 && !p.Settings.Admission.IncludeOwnNamespace && !slices.Contains(p.Settings.Scope.Namespaces, namespace):
		return "", ", unless the operator runs in the namespace " + namespace
	default:
		return "", ""
	}
}

// admissionOf returns the admission handlers of a resource, in any of its versions.
func (c *Cluster) admissionOf(r selector.Resource) []*handler.Declaration {
	var all []*handler.Declaration
	for _, d := range c.Handlers.Admission() {
		resources, err := d.Selector.Resolve(c.served.Resources)
		if ambiguous := (*selector.AmbiguousError)(nil); errors.As(err, &ambiguous) {
			resources = ambiguous.Found // as the webhooks do
		}
		if slices.ContainsFunc(resources, func(other selector.Resource) bool { return other.Group == r.Group && other.Plural == r.Plural }) {
			all = append(all, d)
		}
	}
	return all
}

// requestsOf describes the requests for which the API server calls an admission handler.
func requestsOf(d *handler.Declaration) string {
	operations := "creates, changes, deletes, or connects to it"
	if d.Kind == handler.OnMutate {
		operations = "creates, changes, or connects to it"
	}
	if len(d.Webhook.Operations) > 0 {
		var names []string
		for _, operation := range d.Webhook.Operations {
			names = append(names, string(operation))
		}
		operations = "sends " + strings.Join(names, ", ")
	}
	switch d.Webhook.Subresource {
	case "":
		return "when a client " + operations
	case handler.AnySubresource:
		return "when a client " + operations + ", also for subresources"
	default:
		return "when a client " + operations + ", for the subresource " + d.Webhook.Subresource
	}
}

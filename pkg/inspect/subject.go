package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/condition"
	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/inspection"
	"github.com/kopf-go/kopf/pkg/storage"
)

// subject is the object that is explained, with what was found about it.
type subject struct {
	*inspection.Object

	object    *unstructured.Unstructured
	kubectl   string // the resource as kubectl names it
	commands  CommandLine
	finalizer string
	diffBase  storage.DiffBase
	now       time.Time
	rollouts  map[string]rollout // by the ids of handlers
	failed    string             // the handler that has failed for good last, according to the events
}

// subject makes the plan of an object, without looking at anything else.
func (c *Cluster) subject(ctx context.Context, found discovery.SelectedResource, obj *unstructured.Unstructured) (subject, error) {
	n, err := c.inspector.Inspect(ctx, found, obj.Object)
	if err != nil {
		return subject{}, err
	}
	stored := c.Settings.WithDefaults().Persistence
	return subject{
		Object: n, object: obj, kubectl: nameOf(found.Resource), commands: c.CommandLine, finalizer: stored.Finalizer, diffBase: stored.DiffBase,
		now: time.Now(), rollouts: map[string]rollout{},
	}, nil
}

// change describes a change, without the values of secrets.
func (s *subject) change(item diff.Item) string {
	if s.isSecret() {
		return fmt.Sprintf("%s %s", item.Op, item.Path)
	}
	return item.String()
}

// isSecret reports whether the values of the object must not be shown.
func (s *subject) isSecret() bool { return s.kubectl == "secrets" }

// short returns a value as JSON, on one line.
func short(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprintf("(%T)", value)
	}
	text := []rune(strings.TrimSpace(out.String()))
	if len(text) > maxValue {
		return string(text[:maxValue]) + "…"
	}
	return string(text)
}

// maxValue is the length of values that are shown.
const maxValue = 60

// state says what has happened to the object.
func (s *subject) state() string {
	if !s.hasChangeHandlers() {
		return "It has no handlers of changes, so its changes are not tracked."
	}
	if !s.InScope && s.Reason != cause.Delete && !s.hasUndecidable() {
		return "No handler of changes applies to it: it is left alone."
	}
	switch s.Reason {
	case cause.Create:
		return s.opened("It was never handled: an operator handles it as a creation.")
	case cause.Update:
		if len(s.Diff) == 0 && slices.ContainsFunc(s.Handlers, func(h inspection.Handler) bool { return h.Revision != h.RevisionMark && h.Selected }) {
			return s.opened("It was handled under another revision of a handler: an operator handles it again as an update without changes.")
		}
		return s.opened("It has changed since it was handled last: an operator handles it as an update.")
	case cause.Delete:
		return s.opened("It is being deleted, and has the finalizer of this operator: an operator calls its deletion handlers.")
	case cause.Resume:
		return s.opened("It was handled and has not changed; handlers are called again on request.")
	case cause.Free:
		return "It is being deleted, and does not have the finalizer of this operator, or not anymore: no handlers are called for the deletion now."
	}
	if !s.WasHandled { // nothing was compared
		return "What has happened to it is not decidable here, because that depends on filters that are not."
	}
	if failed := s.failedHandlers(); len(failed) > 0 {
		return fmt.Sprintf("It was handled, and has not changed since, but %s failed for good: %s.", plural.Word(len(failed), "a handler has", "handlers have"), strings.Join(failed, ", "))
	}
	return "It was handled, and has not changed since."
}

func (s *subject) opened(text string) string {
	if s.Open {
		return text + " That has begun, and has not ended."
	}
	return text
}

func (s *subject) hasChangeHandlers() bool {
	return slices.ContainsFunc(s.Handlers, func(h inspection.Handler) bool { return h.Kind.IsChange() })
}

func (s *subject) hasUndecidable() bool {
	return slices.ContainsFunc(s.Handlers, func(h inspection.Handler) bool { return h.Undecidable != nil })
}

// named names the object in the arguments of a command.
func (s *subject) named() string { return named(s.kubectl, s.object) }

// named names an object of a resource in the arguments of a command.
func named(resource string, of *unstructured.Unstructured) string {
	return (&subject{kubectl: resource}).namedAs(of.GetNamespace(), of.GetName())
}

// namedAs names another object of the resource.
func (s *subject) namedAs(namespace, name string) string {
	text := s.kubectl + "/" + name
	if namespace != "" {
		text += " -n " + namespace
	}
	return text
}

// duration returns a duration without the units that are zero: 1m instead of 1m0s.
func duration(d time.Duration) string {
	text := d.String()
	for _, rest := range []string{"m0s", "h0m"} {
		if short, found := strings.CutSuffix(text, rest); found {
			text = short + rest[:1]
		}
	}
	return text
}

// at returns a time, and how far away it is.
func (s *subject) at(t time.Time) string {
	text := t.UTC().Format(time.RFC3339)
	if t.After(s.now) {
		return text + " (in " + duration(t.Sub(s.now).Round(time.Second)) + ")"
	}
	return text + " (" + duration(s.now.Sub(t).Round(time.Second)) + " ago)"
}

// notes says what else was found.
func (s *subject) notes() []string {
	var notes []string
	for _, name := range s.Undeclared {
		notes = append(notes, fmt.Sprintf("It has the progress of a handler that is not declared here: %s. It was renamed or removed while it was handling the object, or another operator uses the same storage. If it was renamed, declare it with its former id (kopf.ID), so that it continues. %s", name, s.Remarks[name]))
	}
	for _, err := range s.Unreadable {
		notes = append(notes, fmt.Sprintf("A stored value cannot be read, and counts as absent: %v.", err))
	}
	if s.Suspension.Err != nil {
		notes = append(notes, fmt.Sprintf("The request to suspend the object has no effect: %v.", s.Suspension.Err))
	}
	notes = append(notes, s.others()...)
	hasOutcome := s.declaresConditions() && condition.Of(s.object.Object).Get(condition.Ready) != nil
	if s.Reason == cause.NoOp && s.WasHandled && s.hasChangeHandlers() && !hasOutcome {
		why := "it was handled without kopf.Conditions"
		if s.declaresConditions() {
			why = "it does not have the condition Ready"
		}
		again := "HANDLER"
		ids := possible(s.Object, request.Rerun)
		top := call.TopOf(s.failed, ids)
		switch {
		case top != "": // a sub-handler is called with its parent
			again = top
		case len(ids) == 1:
			again = ids[0]
		}
		notes = append(notes, fmt.Sprintf("The object does not say whether the handlers have succeeded or failed for good, because %s: see its events and the log. To call a handler again: %s",
			why, s.commands.Of(string(request.Rerun), s.named()+" "+again)))
	}
	if s.hasUndecidable() {
		notes = append(notes, "Some filters cannot be evaluated here, so it can be that other handlers are called than those that are shown, and that the object needs the finalizer although it is not said.")
	}
	return notes
}

// deletion returns sentences about who holds the object, or would hold it.
func (s *subject) deletion() []string {
	var lines []string
	deleting := s.object.GetDeletionTimestamp() != nil
	hasDeletionHandlers := slices.ContainsFunc(s.Handlers, func(h inspection.Handler) bool { return h.HoldsDeletion() && h.OutOfScope.Matches() })
	switch {
	case deleting && s.HasFinalizer && s.HeldByFailure != "":
		lines = append(lines, fmt.Sprintf("The deletion is held, because the handler %s has failed for good. Clean up, and then: %s", s.HeldByFailure, s.commands.Of("skip", s.named()+" "+s.HeldByFailure+" --abandon")))
	case deleting && s.HasFinalizer:
		lines = append(lines, fmt.Sprintf("The object is being deleted since %s. It has the finalizer %s of this operator, which removes it when its deletion handlers and daemons have ended.", s.at(s.object.GetDeletionTimestamp().Time), s.finalizer))
	case deleting:
		lines = append(lines, fmt.Sprintf("The object is being deleted since %s. This operator does not hold it.", s.at(s.object.GetDeletionTimestamp().Time)))
	case s.HasFinalizer && s.NeedsFinalizer:
		lines = append(lines, fmt.Sprintf("The object has the finalizer %s: its deletion will wait for this operator.", s.finalizer))
	case s.HasFinalizer && s.hasUndecidable():
		lines = append(lines, fmt.Sprintf("The object has the finalizer %s of this operator.", s.finalizer))
	case s.HasFinalizer:
		lines = append(lines, fmt.Sprintf("The object has the finalizer %s, and no handler needs it: a running operator removes it.", s.finalizer))
	case s.NeedsFinalizer && !hasDeletionHandlers:
		lines = append(lines, fmt.Sprintf("The object does not have the finalizer %s now: a running operator adds it while a daemon runs for the object.", s.finalizer))
	case s.NeedsFinalizer:
		lines = append(lines, fmt.Sprintf("The object does not have the finalizer %s yet: a running operator adds it before it calls handlers.", s.finalizer))
	}
	for _, other := range s.object.GetFinalizers() {
		switch {
		case other == s.finalizer:
		case deleting && !s.HasFinalizer && other == metav1.FinalizerDeleteDependents:
			lines = append(lines, fmt.Sprintf("It waits for the finalizer %s of Kubernetes, which deletes the objects before it that have owner references to it.", other))
		case deleting && !s.HasFinalizer:
			// An object that is being deleted gets no new finalizers, so the command removes no other.
			rest := slices.DeleteFunc(slices.Clone(s.object.GetFinalizers()), func(name string) bool { return name == other })
			body := fmt.Sprintf(`{"metadata":{"finalizers":%s}}`, short(rest))
			remove := s.commands.Kubectl("patch " + s.named() + " --type=merge -p " + Quote(body))
			lines = append(lines, fmt.Sprintf("It waits for the finalizer %s of another controller, which must remove it: see its log. If that controller does not exist anymore, clean up for it, and then: %s", other, remove))
		default:
			lines = append(lines, fmt.Sprintf("The deletion also waits for the finalizer %s of another controller.", other))
		}
	}
	if lines == nil {
		lines = []string{"The deletion waits for nothing."}
	}
	return lines
}

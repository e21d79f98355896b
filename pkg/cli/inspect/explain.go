package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/verdict"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// Explanation says what the handlers of a program would do with an object, and why.
type Explanation struct {
	Object    string `json:"object"`
	Namespace string `json:"namespace,omitempty"`
	// Reason is what has happened to the object: create, update, delete, resume, noop, or free.
	Reason string `json:"reason"`
	// State says it as a sentence.
	State string `json:"state"`
	// Changes are the fields that have changed since the object was handled last.
	Changes []string `json:"changes,omitempty"`
	// Deletion says what the deletion waits for, or what it would wait for.
	Deletion []string  `json:"deletion"`
	Handlers []Handler `json:"handlers"`
	// Children are those of handlers of Ensure.
	Children []Child `json:"children,omitempty"`
	// Holds says what keeps handlers from being called: suspensions, and other operators.
	Holds []string `json:"holds,omitempty"`
	// Requests says what would come of requests that no operator has honored yet.
	Requests []string `json:"requests,omitempty"`
	// Warnings are the latest events of that type about the object.
	Warnings []string `json:"warnings,omitempty"`
	// Leader says who holds the lease of the operator, if its namespace is known.
	Leader []string `json:"leader,omitempty"`
	// Now is what a running operator is doing, if it was asked.
	Now *Now `json:"now,omitempty"`
	// Notes are other findings, and what is unknown.
	Notes []string `json:"notes,omitempty"`
	Peers []Peer   `json:"peers,omitempty"`
}

// Handler is what is said about one handler.
type Handler struct {
	ID         string `json:"id"`
	Kind       string `json:"kind"`
	DeclaredAt string `json:"declaredAt,omitempty"`
	// State is one word: due, waiting, succeeded, failed, background, undecidable, …
	State   string `json:"state"`
	Message string `json:"message"`
	// Todo is what a person can do about it.
	Todo string `json:"todo,omitempty"`
}

// Explain explains an object.
func (c *Cluster) Explain(ctx context.Context, t Target) (*Explanation, error) {
	found, obj, err := c.get(ctx, t)
	if err != nil {
		return nil, err
	}
	n, err := c.inspector.Inspect(ctx, found, obj.Object)
	if err != nil {
		return nil, fmt.Errorf("the object %s/%s cannot be explained: %w", t.Kind, t.Name, err)
	}
	s := situation{Inspection: n, object: obj, kubectl: nameOf(found.Resource), commands: c.CommandLine, prefix: c.requestPrefix(), finalizer: c.Settings.WithDefaults().Persistence.Finalizer, now: time.Now()}
	s.rollouts = c.rollouts(ctx, found, &s)
	e := describe(s)
	e.Handlers = append(e.Handlers, c.admission(found, &s)...)
	c.addChildren(ctx, found, &s, e)
	e.Holds = append(e.Holds, c.outsideScope(obj.GetNamespace())...)
	e.Holds = append(e.Holds, c.whoPauses(ctx, obj.GetNamespace(), e)...)
	addWarnings(ctx, c, &s, e)
	e.Leader = whoLeads(ctx, c, s.now)
	e.qualify()
	e.Notes = append(e.Notes, "The flags and variables of a running operator, such as --namespace and --priority, are unknown here: the answer is for an operator without them.")
	if note := c.startupNote(); note != "" {
		e.Notes = append(e.Notes, note)
	}
	return e, nil
}

// qualify says what is not certain about handlers that will run.
func (e *Explanation) qualify() {
	isDue := false
	for i := range e.Handlers {
		if h := &e.Handlers[i]; h.State == string(verdict.Due) {
			isDue = true
			if rest, will := strings.CutPrefix(h.Message, "will run"); will && len(e.Holds) > 0 {
				h.State, h.Message = string(verdict.Paused), "would run"+rest
			}
		}
	}
	if isDue && len(e.Holds) == 0 {
		e.Notes = append(e.Notes, noteRunning)
	}
}

const noteRunning = "Whether a handler that will run is already running is not decidable here: the object says nothing about an attempt before it has ended. Ask a running operator by --running, or see its log with --verbose. Whether one is running: see its pods, and --operator-namespace names the leader."

// situation is an object and what was found about it.
type situation struct {
	*reconcile.Inspection

	object    *unstructured.Unstructured
	kubectl   string // the resource as kubectl names it
	commands  CommandLine
	prefix    string // of the annotations of requests
	finalizer string
	now       time.Time
	rollouts  map[string]rollout // by the ids of handlers
}

func describe(s situation) *Explanation {
	e := &Explanation{Object: s.kubectl + "/" + s.object.GetName(), Namespace: s.object.GetNamespace(), Reason: string(s.Reason), State: s.state()}
	for _, item := range s.Diff {
		if s.WasHandled {
			e.Changes = append(e.Changes, s.change(item))
		}
	}
	e.Handlers = append(s.handlers(), changing{&s}.subhandlers()...)
	e.Deletion = s.deletion()
	e.Holds = s.suspension()
	for _, r := range s.Requests {
		e.Requests = append(e.Requests, r.Message)
	}
	e.Notes = s.notes()
	return e
}

// change describes a change, without the values of secrets.
func (s *situation) change(item diff.Item) string {
	if s.isSecret() {
		return fmt.Sprintf("%s %s", item.Op, item.Path)
	}
	return fmt.Sprintf("%s %s: %s -> %s", item.Op, item.Path, short(item.Old), short(item.New))
}

// isSecret reports whether the values of the object must not be shown.
func (s *situation) isSecret() bool { return s.kubectl == "secrets" }

// short returns a value on one line.
func short(value any) string {
	if value == nil {
		return "(none)"
	}
	text := fmt.Sprintf("%v", value)
	if len(text) > maxValue {
		text = text[:maxValue] + "…"
	}
	return text
}

// maxValue is the length of values that are shown.
const maxValue = 60

// state says what has happened to the object.
func (s *situation) state() string {
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
		if len(s.Diff) == 0 && slices.ContainsFunc(s.Handlers, func(h reconcile.InspectedHandler) bool { return h.Revision != h.RevisionMark && h.Selected }) {
			return s.opened("It was handled under another revision of a handler: an operator handles it again as an update without changes.")
		}
		return s.opened("It has changed since it was handled last: an operator handles it as an update.")
	case cause.Delete:
		return s.opened("It is being deleted, and has the finalizer of this operator: its deletion handlers are called.")
	case cause.Resume:
		return s.opened("It was handled and has not changed; handlers are called again on request.")
	case cause.Free:
		return "It is being deleted, and does not have the finalizer of this operator, or not anymore: no handlers are called for the deletion."
	}
	if !s.WasHandled { // nothing was compared
		return "What has happened to it is not decidable here, because that depends on filters that are not."
	}
	return "It was handled, and has not changed since."
}

func (s *situation) opened(text string) string {
	if s.Open {
		return text + " That has begun, and has not ended."
	}
	return text
}

func (s *situation) hasChangeHandlers() bool {
	return slices.ContainsFunc(s.Handlers, func(h reconcile.InspectedHandler) bool { return h.Kind.IsChange() })
}

func (s *situation) hasUndecidable() bool {
	return slices.ContainsFunc(s.Handlers, func(h reconcile.InspectedHandler) bool { return h.Undecidable != nil })
}

// suspension says whether the object is suspended.
func (s *situation) suspension() []string {
	switch {
	case !s.Suspension.Active:
		return nil
	case s.Suspension.Until.IsZero():
		return []string{"The object is suspended until the request is removed: no handlers are called for it, and its deletion is held. To end that: " + s.commands.Of("unsuspend", s.named())}
	default:
		return []string{fmt.Sprintf("The object is suspended until %s: no handlers are called for it, and its deletion is held. To end that: %s", s.at(s.Suspension.Until), s.commands.Of("unsuspend", s.named()))}
	}
}

// named names the object in the arguments of a command.
func (s *situation) named() string { return s.namedAs(s.object.GetNamespace(), s.object.GetName()) }

// namedAs names another object of the resource.
func (s *situation) namedAs(namespace, name string) string {
	text := s.kubectl + "/" + name
	if namespace != "" {
		text += " -n " + namespace
	}
	return text
}

// at returns a time, and how far away it is.
func (s *situation) at(t time.Time) string {
	text := t.UTC().Format(time.RFC3339)
	if t.After(s.now) {
		return text + " (in " + t.Sub(s.now).Round(time.Second).String() + ")"
	}
	return text + " (" + s.now.Sub(t).Round(time.Second).String() + " ago)"
}

// notes says what else was found.
func (s *situation) notes() []string {
	var notes []string
	for _, name := range s.Undeclared {
		notes = append(notes, fmt.Sprintf("It has the progress of a handler that is not declared here: %s. It was renamed or removed while it was handling the object, or another operator uses the same storage. If it was renamed, declare it with its former id (kopf.ID), so that it continues.", name))
	}
	for _, err := range s.Unreadable {
		notes = append(notes, fmt.Sprintf("A stored value cannot be read, and counts as absent: %v.", err))
	}
	if s.Suspension.Err != nil {
		notes = append(notes, fmt.Sprintf("The request to suspend the object has no effect: %v.", s.Suspension.Err))
	}
	notes = append(notes, s.others()...)
	if s.Reason == cause.NoOp && s.WasHandled && s.hasChangeHandlers() {
		notes = append(notes, fmt.Sprintf("Whether the handlers have succeeded or failed for good is not stored on an object that was handled: see the events (%s) and the log.", s.commands.Kubectl("describe "+s.named())))
	}
	if s.hasUndecidable() {
		notes = append(notes, "Some filters cannot be evaluated here, so it can be that other handlers are called than those that are shown, and that the object needs the finalizer although it is not said.")
	}
	return notes
}

// deletion says who holds the object, or would hold it.
func (s *situation) deletion() []string {
	var lines []string
	deleting := s.object.GetDeletionTimestamp() != nil
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
	case s.NeedsFinalizer && !s.hasDeletionHandlers():
		lines = append(lines, fmt.Sprintf("The object does not have the finalizer %s now: a running operator adds it while a daemon runs for the object.", s.finalizer))
	case s.NeedsFinalizer:
		lines = append(lines, fmt.Sprintf("The object does not have the finalizer %s yet: a running operator adds it before it calls handlers.", s.finalizer))
	}
	for _, other := range s.object.GetFinalizers() {
		switch {
		case other == s.finalizer:
		case deleting && !s.HasFinalizer:
			lines = append(lines, fmt.Sprintf("It waits for the finalizer %s of another controller, which must remove it.", other))
		default:
			lines = append(lines, fmt.Sprintf("The deletion also waits for the finalizer %s of another controller.", other))
		}
	}
	if lines == nil {
		lines = []string{"The deletion waits for nothing."}
	}
	return lines
}

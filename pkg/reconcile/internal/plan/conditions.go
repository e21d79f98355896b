package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/internal/condition"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
)

// The standard conditions of an object are Ready, and, while they are true, Reconciling and Stalled,
// each with the generation that it is about.
//
// They are written when nothing is left to do at a generation. While handlers are at work, the
// conditions of an earlier generation say so already: their observedGeneration is behind.
// Only if the stored conditions would be taken for the current state, because what happens to
// the object does not change its generation, they are replaced by Reconciling.
//
// The failures of handlers outlive their cycle: another handler can succeed later, but the
// object is ready only when the failed one was called again. The Stalled condition keeps them,
// so that nothing else must be stored.

// Conditions decides what the conditions of an object say about the outcome of its handlers. The writer
// asks for each attempt to write, because a rejected edit fails its handler.
type Conditions struct {
	plan     *Plan
	handlers *Handlers
	calls    *record.Calls
	children Children
	// generation is the one that the handlers have seen.
	generation int64
	now        time.Time
}

// Children are those that handlers of an object have returned. The object waits for the Unready ones,
// and the Broken ones have failed.
type Children struct{ Unready, Broken []string }

// conditions returns what decides about the conditions of the object, or nil if its status has none.
func (p *Plan) conditions(c Circumstances) *Conditions {
	if !c.Handlers.HasConditions || !p.IsResponsible(c.Handlers) {
		return nil
	}
	return &Conditions{
		plan: p, handlers: c.Handlers, calls: c.Calls, children: c.Children, generation: p.CallContext.Body.Generation(), now: c.Now,
	}
}

// Amend returns the merge patch for the conditions of the object with the edits of its handlers, or nil
// if they say the right thing already; stored is the object without the edits. If continues is set, the
// pass continues after the write, which does not leave the object at rest.
//
// An object that is being deleted is not ready anyway; its conditions are about what holds it.
func (c *Conditions) Amend(stored, edited map[string]any, continues bool) map[string]any {
	o := c.outcome()
	if c.plan.Deleting && !o.Held && len(o.Misfits) == 0 {
		return nil
	}
	current, _ := object.Lookup(stored, object.Path{"metadata", "generation"})
	o.Generation = c.generation
	o.Continues = continues || current != c.generation
	return o.amend(stored, edited, c.now)
}

// outcome returns the outcome of the handlers. A failure is over when its handler takes part in a cycle
// again, has restored its children, or is not declared anymore.
func (c *Conditions) outcome() outcome {
	p := c.plan
	o := outcome{Unready: c.children.Unready, Broken: c.children.Broken, Applies: func() bool { return p.AppliesToCreation(c.handlers) }}
	for _, m := range p.AllMisfits(c.calls) {
		if m.Waits {
			o.Misfits = append(o.Misfits, fmt.Sprintf("Handler %s cannot be called: %s.", m.Handler.ID, m.Err))
		}
	}
	o.Called = len(p.Background) > 0
	takesPart := func(string) bool { return false }
	if !p.NothingToDo() {
		progress := p.Cycle.Progress
		takesPart = progress.TakesPart
		o.Called = o.Called || len(p.Handlers) > 0
		o.Unfinished = progress.HasUnfinished()
		o.Failed = progress.Failures()
		o.Held = p.Deleting && p.Cycle.HeldByFailure() != ""
	}
	restored := c.addRestorations(&o)
	o.Called = o.Called || len(restored) > 0
	o.IsOver = func(id string) bool {
		declared := call.TopOf(id, c.handlers.IDs)
		return declared == "" || takesPart(declared) || slices.Contains(restored, declared)
	}
	return o
}

// addRestorations adds the outcome of the calls that restore children outside of cycles, and returns
// the ids of the handlers that have succeeded. Calls for single children do not count.
func (c *Conditions) addRestorations(o *outcome) (restored []string) {
	if c.calls == nil {
		return nil
	}
	records := c.calls.Records()
	for _, d := range c.handlers.Triggered.OfKind(handler.OnRestore) {
		ended := c.calls.Ended(d.ID)
		switch {
		case ended != nil && ended.Failure:
			if o.Failed == nil {
				o.Failed = map[string]string{}
			}
			o.Failed[handler.ReportedID(d)] = ended.Message
		case ended != nil:
			restored = append(restored, d.Top().ID)
		case records[d.ID] != nil:
			o.Failing = append(o.Failing, d.Top().ID)
		}
	}
	return restored
}

// The reasons of the conditions.
const (
	reasonReconciled  = "Reconciled"          // Ready: nothing is left to do
	reasonUnconcerned = "NoHandlerApplies"    // Ready: there was nothing to do
	reasonReconciling = "HandlersRunning"     // handlers have not finished
	reasonFailing     = "ChildrenNotRestored" // handlers are retried, because others have changed children
	reasonUnready     = "ChildrenNotReady"
	reasonFailed      = "HandlersFailed" // handlers have failed permanently
	reasonMisfit      = "ObjectMisfit"   // handlers cannot be called
	reasonBroken      = "ChildrenFailed"
	reasonHeld        = "DeletionHeld" // a failed handler holds the deletion
)

// outcome is the outcome of the handlers of an object, at one version of it.
type outcome struct {
	// Generation is the generation of the object that the handlers have seen.
	Generation int64
	// Continues is set if more follows at once, so that the conditions can wait: another
	// generation, or the next cycle.
	Continues bool
	// Called is set if handlers take part in the cycle, have restored children, or run in the
	// background.
	Called bool
	// Applies reports whether a handler is called for the creation of such an object. It is asked
	// only if nothing else shows whether a handler was ever called.
	Applies func() bool
	// Unfinished is set if a handler will be called again without the help of a person.
	Unfinished bool
	// Failed contains the messages of the handlers that have failed permanently, in the cycle or
	// outside of it.
	Failed map[string]string
	// Failing are the handlers that are called again because they could not restore children
	// that others have changed. They belong to no cycle.
	Failing []string
	// IsOver reports whether a former failure of a handler no longer counts: it takes part in
	// the cycle, or is not declared anymore.
	IsOver func(id string) bool
	// Misfits say which handlers cannot be called until a person acts, and why.
	Misfits []string
	// Unready are the children that the object waits for, and Broken those that have failed.
	Unready, Broken []string
	// Held is set if a failure holds the deletion of the object.
	Held bool
}

// amend returns the merge patch that makes the status say this, or nil if it does. The patch
// is for the object with the edits of its handlers; stored is the object without them. Other
// conditions are kept.
func (o outcome) amend(stored, edited map[string]any, now time.Time) map[string]any {
	before := condition.Of(stored)
	lost := o.failures(before)
	isRetried := len(o.Broken) == 0 && (o.Unfinished || len(o.Failing) > 0)
	observed, known := object.Lookup(stored, object.Path{"status", "observedGeneration"})
	generation, _ := object.Lookup(stored, object.Path{"metadata", "generation"})
	isCurrent := !known || observed == generation // the stored conditions are taken for the current state
	formerly := before.Get(condition.Ready)["reason"]

	// Either the object is ready, or why is a condition that is true, and says why it is not.
	var why metav1.Condition
	switch {
	case len(lost) > 0:
		why = o.stalled(lost)
	case o.Continues, isRetried && !isCurrent:
		return nil
	case isRetried && o.Unfinished:
		why = metav1.Condition{Type: condition.Reconciling, Reason: reasonReconciling, Message: "The handlers have not finished yet."}
	case isRetried && len(o.Misfits) == 0: // no message has an error, which can differ with each attempt
		why = metav1.Condition{
			Type: condition.Reconciling, Reason: reasonFailing,
			Message: fmt.Sprintf("These handlers fail to restore children that others have changed, and are called again: %s.", some(o.Failing)),
		}
	case len(o.Broken)+len(o.Misfits) > 0:
		why = o.stalled(nil)
	case len(o.Unready) > 0:
		why = metav1.Condition{
			Type: condition.Reconciling, Reason: reasonUnready, Message: fmt.Sprintf("These children are not ready yet: %s.", some(o.Unready)),
		}
	case o.Called || formerly == reasonReconciled || formerly != reasonUnconcerned && o.Applies():
		// A version of the object that concerns no handler does not change what is known of earlier versions.
		why = metav1.Condition{Reason: reasonReconciled, Message: "The handlers have finished."}
	default:
		why = metav1.Condition{Reason: reasonUnconcerned, Message: "No handler applies to this object now."}
	}

	list := condition.Of(edited)
	for _, kind := range []string{condition.Reconciling, condition.Stalled} {
		if kind != why.Type {
			list = list.Without(kind)
		}
	}
	why.ObservedGeneration = o.Generation
	ready := why
	ready.Type = condition.Ready
	ready.Status = metav1.ConditionTrue
	if why.Type != "" {
		ready.Status = metav1.ConditionFalse
		why.Status = metav1.ConditionTrue
		list = list.With(ready, now).With(why, now)
	} else {
		list = list.With(ready, now)
	}
	return patch.Minimal(edited, map[string]any{"status": map[string]any{"conditions": []any(list), "observedGeneration": o.Generation}})
}

// stalled returns the condition while a person must act.
func (o outcome) stalled(lost failures) metav1.Condition {
	c := metav1.Condition{Type: condition.Stalled, Reason: reasonMisfit}
	lines := append(lost.lines(), o.Misfits...)
	if len(o.Broken) > 0 {
		c.Reason = reasonBroken
		lines = append(lines, fmt.Sprintf("These children have failed: %s.", some(o.Broken)))
	}
	switch {
	case o.Held:
		c.Reason = reasonHeld
	case len(lost) > 0:
		c.Reason = reasonFailed
	}
	c.Message = strings.Join(lines, "\n")
	return c
}

// mostNamed limits how many children or handlers a message names.
const mostNamed = 3

// some returns the first of the names.
func some(names []string) string {
	extra := len(names) - mostNamed
	if extra > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(names[:mostNamed], ", "), extra)
	}
	return strings.Join(names, ", ")
}

// failures contains the messages of handlers that have failed permanently. The message of the
// Stalled condition has one line for each, from which they are read again.
type failures map[string]string

var failureLine = regexp.MustCompile(`^Handler (\S+) failed permanently: (.*)$`)

// maxMessage limits the length of one message, and maxFailures the number of lines: the API
// conventions allow 32,768 bytes for all of them.
const (
	maxMessage  = 400
	maxFailures = 64
)

// lines returns the lines of the failures in order.
func (f failures) lines() []string {
	lines := make([]string, 0, len(f))
	for i, id := range slices.Sorted(maps.Keys(f)) {
		if i == maxFailures {
			return append(lines, fmt.Sprintf("%d other handlers failed permanently.", len(f)-i))
		}
		lines = append(lines, fmt.Sprintf("Handler %s failed permanently: %s", id, clean(f[id])))
	}
	return lines
}

// failures returns the failures that count: those of the cycle, and former ones.
func (o outcome) failures(stored condition.List) failures {
	all := read(stored)
	maps.DeleteFunc(all, func(id, _ string) bool { return o.IsOver(id) })
	maps.Copy(all, o.Failed)
	return all
}

// FailuresIn returns the messages of the handlers that have failed permanently, as the conditions of
// an object say.
func FailuresIn(body map[string]any) map[string]string { return read(condition.Of(body)) }

// read reads the failures from the message of the Stalled condition.
func read(stored condition.List) failures {
	all := failures{}
	message, _ := stored.Get(condition.Stalled)["message"].(string)
	for line := range strings.Lines(message) {
		found := failureLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if len(found) == 3 {
			all[found[1]] = found[2]
		}
	}
	return all
}

// clean makes one short line of a message.
func clean(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}

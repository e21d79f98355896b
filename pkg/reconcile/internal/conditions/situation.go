package conditions

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/condition"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

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

// Situation is what the handlers of an object have come to, at one version of it.
type Situation struct {
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

// Amend returns the merge patch that makes the status say this, or nil if it does. The patch
// is for the object with the edits of its handlers; stored is the object without them. Other
// conditions are kept.
func (s Situation) Amend(stored, edited map[string]any, now time.Time) map[string]any {
	lost := s.failures(condition.Of(stored))
	isRetried := len(s.Broken) == 0 && (s.Unfinished || len(s.Failing) > 0)
	switch {
	case len(lost) > 0:
		return s.amendment(edited, now, s.stalled(lost))
	case s.Continues, isRetried && !isCurrent(stored): // the conditions are not taken for the current state
		return nil
	case isRetried && (s.Unfinished || len(s.Misfits) == 0):
		return s.amendment(edited, now, s.retried())
	case len(s.Broken)+len(s.Misfits) > 0:
		return s.amendment(edited, now, s.stalled(nil))
	case len(s.Unready) > 0:
		return s.amendment(edited, now, metav1.Condition{
			Type: condition.Reconciling, Reason: reasonUnready, Message: fmt.Sprintf("These children are not ready yet: %s.", some(s.Unready)),
		})
	default:
		return s.amendment(edited, now, s.ready(condition.Of(stored)))
	}
}

// ready returns the condition when nothing is left to do. A version of the object that concerns no
// handler does not change what earlier versions have come to.
func (s Situation) ready(before condition.List) metav1.Condition {
	reason := before.Get(condition.Ready)["reason"]
	if s.Called || reason == reasonReconciled || reason != reasonUnconcerned && s.Applies() {
		return metav1.Condition{Reason: reasonReconciled, Message: "The handlers have finished."}
	}
	return metav1.Condition{Reason: reasonUnconcerned, Message: "No handler applies to this object now."}
}

// retried returns the condition while handlers are called again. Its message has no error, which
// can differ with each attempt.
func (s Situation) retried() metav1.Condition {
	c := metav1.Condition{Type: condition.Reconciling, Reason: reasonReconciling, Message: "The handlers have not finished yet."}
	if !s.Unfinished {
		c.Reason = reasonFailing
		c.Message = fmt.Sprintf("These handlers fail to restore children that others have changed, and are called again: %s.", some(s.Failing))
	}
	return c
}

// stalled returns the condition while a person must act.
func (s Situation) stalled(lost failures) metav1.Condition {
	c := metav1.Condition{Type: condition.Stalled, Reason: reasonMisfit}
	lines := append(lost.lines(), s.Misfits...)
	if len(s.Broken) > 0 {
		c.Reason = reasonBroken
		lines = append(lines, fmt.Sprintf("These children have failed: %s.", some(s.Broken)))
	}
	switch {
	case s.Held:
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
	if extra := len(names) - mostNamed; extra > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(names[:mostNamed], ", "), extra)
	}
	return strings.Join(names, ", ")
}

// isCurrent reports whether the conditions can be taken for the current state.
func isCurrent(body map[string]any) bool {
	observed, known := object.Lookup(body, object.Path{"status", "observedGeneration"})
	generation, _ := object.Lookup(body, object.Path{"metadata", "generation"})
	return !known || observed == generation
}

// amendment returns the merge patch for the conditions of an object: either it is ready, or
// the condition without a status is true and says why it is not.
func (s Situation) amendment(body map[string]any, now time.Time, why metav1.Condition) map[string]any {
	list := condition.Of(body)
	for _, kind := range []string{condition.Reconciling, condition.Stalled} {
		if kind != why.Type {
			list = list.Without(kind)
		}
	}
	why.ObservedGeneration = s.Generation
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
	return patch.Minimal(body, map[string]any{"status": map[string]any{"conditions": []any(list), "observedGeneration": s.Generation}})
}

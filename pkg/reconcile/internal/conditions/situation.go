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
	reasonReconciled  = "Reconciled"      // Ready: nothing is left to do
	reasonReconciling = "HandlersRunning" // handlers have not finished
	reasonFailed      = "HandlersFailed"  // handlers have failed permanently
	reasonMisfit      = "ObjectMisfit"    // handlers cannot be called
	reasonUnready     = "ChildrenNotReady"
	reasonHeld        = "DeletionHeld" // a failed handler holds the deletion
)

// Situation is what the handlers of an object have come to, at one version of it.
type Situation struct {
	// Generation is the generation of the object that the handlers have seen.
	Generation int64
	// Continues is set if more follows at once, so that the conditions can wait: another
	// generation, or the next cycle.
	Continues bool
	// Unfinished is set if a handler will be called again without the help of a person.
	Unfinished bool
	// Failed contains the messages of the handlers that have failed permanently in the cycle.
	Failed map[string]string
	// IsOver reports whether a former failure of a handler no longer counts: it takes part in
	// the cycle, or is not declared anymore.
	IsOver func(id string) bool
	// Misfits say which handlers cannot be called until a person acts, and why.
	Misfits []string
	// Unready are the children that the object waits for.
	Unready []string
	// Held is set if a failure holds the deletion of the object.
	Held bool
}

// Amend returns the merge patch that makes the status say this, or nil if it does. The patch
// is for the object with the edits of its handlers; stored is the object without them. Other
// conditions are kept.
func (s Situation) Amend(stored, edited map[string]any, now time.Time) map[string]any {
	lost := s.failures(condition.Of(stored))
	switch {
	case len(lost) == 0 && s.Continues:
		return nil
	case len(lost) == 0 && s.Unfinished && !isCurrent(stored):
		return nil // the conditions are not taken for the current state
	case len(lost) == 0 && s.Unfinished:
		return s.amendment(edited, now, metav1.Condition{
			Type: condition.Reconciling, Reason: reasonReconciling, Message: "The handlers have not finished yet.",
		})
	case len(lost) == 0 && len(s.Misfits) == 0 && len(s.Unready) > 0:
		return s.amendment(edited, now, metav1.Condition{Type: condition.Reconciling, Reason: reasonUnready, Message: s.unready()})
	case len(lost) == 0 && len(s.Misfits) == 0:
		return s.amendment(edited, now, metav1.Condition{Reason: reasonReconciled, Message: "The handlers have finished."})
	}
	return s.amendment(edited, now, metav1.Condition{
		Type: condition.Stalled, Reason: s.stallReason(lost), Message: strings.Join(append(lost.lines(), s.Misfits...), "\n"),
	})
}

func (s Situation) stallReason(lost failures) string {
	switch {
	case s.Held:
		return reasonHeld
	case len(lost) > 0:
		return reasonFailed
	default:
		return reasonMisfit
	}
}

// mostNamed limits how many children a message names.
const mostNamed = 3

func (s Situation) unready() string {
	names, more := s.Unready, ""
	if extra := len(names) - mostNamed; extra > 0 {
		names, more = names[:mostNamed], fmt.Sprintf(", and %d more", extra)
	}
	return fmt.Sprintf("These children are not ready yet: %s%s.", strings.Join(names, ", "), more)
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
	ready.Type, ready.Status = condition.Ready, metav1.ConditionTrue
	if why.Type != "" {
		ready.Status, why.Status = metav1.ConditionFalse, metav1.ConditionTrue
		list = list.With(ready, now).With(why, now)
	} else {
		list = list.With(ready, now)
	}
	return patch.Minimal(body, map[string]any{"status": map[string]any{"conditions": []any(list), "observedGeneration": s.Generation}})
}

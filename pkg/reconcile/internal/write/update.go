package write

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
)

// Update is the state that a pass wants for an object, in a form that survives conflicts. The
// edits of handlers are kept separately in the State.
type Update struct {
	// Cycle contains the records. Nil means that no records are written.
	Cycle *record.Cycle
	// Calls are those that belong to no cycle. Nil means that there are none.
	Calls *record.Calls
	// Decision was made for the session's version.
	Decision plan.Decision
	// Decide makes the decision for another version. Nil keeps the decision.
	Decide func(ctx context.Context, body *object.Body) (plan.Decision, error)
	// Stopping is set if the operator stops. If others have then written to the object,
	// the next operator ends the cycle.
	Stopping bool

	// changedByOthers is set if others have written to the object since the update was created.
	changedByOthers bool
	// withoutEdits, onlyFinalizer, and unstored are set if the object is being deleted, and the
	// write is refused: see reduce and countInMemory.
	withoutEdits, onlyFinalizer, unstored bool
	// refusedAt is the time of the first refusal of the writes to an object that is being deleted.
	refusedAt time.Time
	// finished is set if another operator has finished the cycle.
	finished bool
	// rejected is set if the server has rejected the update, but would accept each edit.
	rejected bool
	// continues is set if the write ends the cycle, and the next one follows.
	continues bool
	// conditions is the merge patch of the conditions in the last attempt to write.
	conditions map[string]any
	// statusRecords are the records in the status still to write after the main part. At the end of a cycle, a later
	// pass writes them if others have written to the object meanwhile: see record.Keeper.
	statusRecords map[string]any
	// inFlight contains writes of edits that may have been committed.
	inFlight []inFlight
	// withheld contains the edits that the current commit leaves out, because a permission for them is missing.
	withheld withheld
}

// endsCycle reports whether the cycle ends with this write. The cycle of a deletion ends only
// with the finalizer, because its records show which handlers have finished.
func (u *Update) endsCycle() bool {
	return u.Cycle != nil && !u.isPartial() && u.Cycle.Progress.Done() && !u.Decision.DaemonsRunning && !(u.Stopping && u.changedByOthers) &&
		(u.Cycle.Reason != cause.Delete || u.Decision.RemoveFinalizer)
}

// isHeldByFailure reports whether a failed deletion handler holds the object.
func (u *Update) isHeldByFailure() bool {
	return u.Cycle != nil && u.Cycle.Reason == cause.Delete && u.Cycle.HeldByFailure() != ""
}

// removesFinalizer reports whether this write removes the finalizer.
func (u *Update) removesFinalizer() bool {
	return u.Decision.RemoveFinalizer && !u.Decision.DaemonsRunning && !u.isPartial() && !u.isHeldByFailure() && (u.Cycle == nil || u.Cycle.Progress.Done())
}

// deletesObject reports whether this write deletes the object: it is marked for deletion, and
// our finalizer is the last one.
func (u *Update) deletesObject(body *object.Body, finalizer string) bool {
	finalizers := body.Finalizers()
	return u.removesFinalizer() && body.Deleting() && len(finalizers) == 1 && finalizers[0] == finalizer
}

// isReleased reports whether the object was released while another change than its deletion
// was handled: its records must not be written anymore.
func (u *Update) isReleased(body *object.Body, finalizer string) bool {
	return u.Cycle != nil && u.Cycle.Reason != cause.Delete && body.Deleting() && !slices.Contains(body.Finalizers(), finalizer)
}

// Outcome is the result of writing an update.
type Outcome struct {
	// Cycle is the cycle of the written update. It is nil if the update had none, or if
	// there was no update.
	Cycle *record.Cycle
	// Calls are those of the written update, or nil.
	Calls *record.Calls
	// Ended is set if the cycle ended with the write.
	Ended bool
	// Gone is set if the object no longer exists.
	Gone bool
	// Changed is set if the session has a new version of the object.
	Changed bool
	// ChangedByOthers is set if others have written to the object since change detection.
	ChangedByOthers bool
}

// reason returns the purpose of a write for the metrics.
func (u *Update) reason(part string) metrics.Reason {
	switch {
	case part != "":
		return metrics.Status
	case u.Decision.StaleRecords != nil:
		return metrics.Cleanup
	case u.endsCycle():
		return metrics.Handled
	case u.Cycle != nil || u.Calls.HasRecords():
		return metrics.Progress
	case u.Decision.AddFinalizer || u.Decision.RemoveFinalizer:
		return metrics.Finalizer
	default:
		return metrics.Patch
	}
}

// answerOf returns the response of the server for the metrics.
func answerOf(err error) metrics.Answer {
	switch {
	case err == nil:
		return metrics.Written
	case apierrors.IsConflict(err):
		return metrics.Conflict
	case isRejected(err):
		return metrics.Rejected
	default:
		return metrics.Unanswered
	}
}

package write

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
)

// Update is what a pass wants to be true of an object, in terms that survive a
// conflict. What the handlers want to be written is apart from it, in the State.
type Update struct {
	// Cycle is what the records are about; nil: no records are written.
	Cycle *record.Cycle
	// Decision was made on the version that the session has.
	Decision Decision
	// Decide makes the decision for another version; nil: it stays as it is.
	Decide func(ctx context.Context, body *object.Body) (Decision, error)
	// Stopping: the operator stops. If others write to the object by then, ending the
	// cycle is left to the next operator.
	Stopping bool

	// changedByOthers: the object is not the version that the update was made for.
	changedByOthers bool
	// finished: another operator has finished the cycle meanwhile.
	finished bool
	// inFlight is what was sent for the handlers, and may have been committed.
	inFlight []inFlight
}

// Decision is the part of an update that depends on the version of the object.
type Decision struct {
	// AddFinalizer: handlers need the finalizer, before anything else happens.
	AddFinalizer bool
	// RemoveFinalizer: no handler needs the finalizer, once the cycle is over.
	RemoveFinalizer bool
	// DaemonsRunning: the cycle of a deletion stays open until its daemons have ended.
	DaemonsRunning bool
	// Leftovers are records of no open cycle, to be removed; nil: there are none.
	Leftovers *record.Cycle
}

// endsCycle reports whether the cycle ends with this write. That of a deletion ends only
// with the finalizer: its records say which handlers must not be called again.
func (u *Update) endsCycle() bool {
	return u.Cycle != nil && u.Cycle.Progress.Done() && !u.Decision.DaemonsRunning && !(u.Stopping && u.changedByOthers) &&
		(u.Cycle.Reason != cause.Delete || u.Decision.RemoveFinalizer)
}

// isHeldByFailure reports whether a failed deletion handler holds the object.
func (u *Update) isHeldByFailure() bool {
	return u.Cycle != nil && u.Cycle.Reason == cause.Delete && u.Cycle.HeldByFailure() != ""
}

// removesFinalizer reports whether the finalizer is removed by this write.
func (u *Update) removesFinalizer() bool {
	return u.Decision.RemoveFinalizer && !u.Decision.DaemonsRunning && !u.isHeldByFailure() && (u.Cycle == nil || u.Cycle.Progress.Done())
}

// deletesObject reports whether the object is deleted by this write: it is marked for
// deletion, and our finalizer is the last one.
func (u *Update) deletesObject(body *object.Body, finalizer string) bool {
	finalizers := body.Finalizers()
	return u.removesFinalizer() && body.Deleting() && len(finalizers) == 1 && finalizers[0] == finalizer
}

// Outcome is what became of an update.
type Outcome struct {
	// Cycle is the one of the update that was written; nil if it had none, or if
	// nothing was pending.
	Cycle *record.Cycle
	// Ended: the cycle ended with the write.
	Ended bool
	// Gone: the object does not exist anymore.
	Gone bool
	// Changed: the session has another version of the object than before.
	Changed bool
	// ChangedByOthers: others have written to the object since changes were detected.
	ChangedByOthers bool
}

package write

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// reread reads the object after a conflict (409) or a write without a response, and determines
// which parts of the update it contains nevertheless.
func (s *Session) reread(ctx context.Context, u *Update) error {
	body, err := s.get(ctx)
	if err != nil {
		return err
	}
	if body == nil {
		return errGone
	}
	return s.rebase(ctx, u, body)
}

// errReleased ends an update of an object that is being deleted without our finalizer: the
// operator has nothing to do with it anymore.
var errReleased = errors.New("the object was released for deletion")

// rebase binds the update to a version that others may have written, and repeats its
// decisions.
func (s *Session) rebase(ctx context.Context, u *Update, body *object.Body) (err error) {
	s.body = body
	s.changedByOthers = true
	u.changedByOthers = true
	u.statusRecords = nil
	if u.isReleased(body, s.writer.finalizer()) {
		s.state.Drop(handler.ErrGone)
		return errReleased
	}
	u.inFlight = s.state.dropArrived(u.inFlight, body)
	if u.Decide != nil {
		u.Decision, err = u.Decide(ctx, body)
	}
	return err
}

// yieldToOthers compares the update with the records on a version that others may have
// written: another operator, or this one in a write whose response was lost. The stored
// records win. If a stored record is this operator's own record of the same attempt, the edit
// of its handler is dropped, so that the attempt has one outcome.
func (s *Session) yieldToOthers(ctx context.Context, u *Update) error {
	if !u.changedByOthers || u.Cycle == nil {
		return nil
	}
	finished, err := s.isFinished(ctx, u)
	u.finished = finished
	if err != nil {
		return err
	}
	// Another operator may have called other sub-handlers. If a record did not name them, their records
	// would never be found again, and would count for a later change.
	for _, id := range u.Cycle.Progress.Dirty() {
		theirs, err := s.writer.Records.Record(ctx, s.body, id, s.report)
		if err != nil {
			return err
		}
		if theirs != nil {
			u.Cycle.Progress.Load(id).AddSubrefs(theirs.Subrefs...)
		}
	}
	return s.dropOvertaken(ctx, u)
}

// dropOvertaken drops the edits of handlers whose attempt has another outcome already.
func (s *Session) dropOvertaken(ctx context.Context, u *Update) (err error) {
	s.state.dropEdits(func(edit call.Edit) bool {
		if err != nil || !u.Cycle.Progress.Has(edit.ID) {
			return false // an event handler has no record
		}
		var overtaken bool
		overtaken, err = s.isOvertaken(ctx, u, edit.ID)
		return overtaken || u.finished
	})
	return err
}

// isFinished reports whether the cycle has ended since the update was created: by another operator,
// or by this one, in a write whose response was lost.
func (s *Session) isFinished(ctx context.Context, u *Update) (bool, error) {
	if u.Cycle.Reason != cause.Delete || slices.Contains(s.body.Finalizers(), s.writer.finalizer()) {
		continues, err := s.writer.Records.Continues(ctx, u.Cycle, s.body, s.report)
		if continues || err != nil {
			return false, err
		}
	}
	s.report.Log.V(1).Info("The same cycle has ended meanwhile; the records on the object are kept.")
	return true, nil
}

// isOvertaken reports whether another operator has advanced the record of a handler since the
// update was created: with more attempts, or an end.
func (s *Session) isOvertaken(ctx context.Context, u *Update, id string) (bool, error) {
	if !u.changedByOthers {
		return false, nil
	}
	theirs, err := s.writer.Records.Record(ctx, s.body, id, s.report)
	if err != nil || !hasAdvanced(theirs, u.Cycle.Progress.Load(id)) {
		return false, err
	}
	ours := u.Cycle.Progress.Load(id).Record
	if theirs != nil && !theirs.Stopped.Equal(ours.Stopped.Truncate(time.Microsecond)) && s.report.Shared.First(overlapping) {
		s.report.Log.Info("Another instance of this operator handles the same objects at the same time: it has stored the outcome of an attempt that this one has made, too. "+
			"Stop one of them, or let them take turns by leader election or peering. This is logged once.", "handler", id)
	}
	return true, nil
}

// overlapping is the report that another instance handles the same objects.
const overlapping = "\x00overlapping"

// hasAdvanced reports whether a record contains an outcome that it did not contain before. A
// lifecycle that calls one handler at a time also stores records without an attempt: they must
// not replace the outcome of an attempt.
func hasAdvanced(theirs *storage.Record, state *call.State) bool {
	before := state.Stored()
	switch {
	case theirs.Equal(state.Found()):
		return false
	case theirs == nil:
		return before != nil // a record of an earlier cycle may be removed late
	case before == nil || before.Purpose != theirs.Purpose:
		return theirs.Finished() || theirs.Retries > 0
	default:
		return theirs.Retries > before.Retries || theirs.Finished() && !before.Finished()
	}
}

package write

import (
	"context"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/storage"
)

// yieldToOthers compares the update with the records on a version that others may have
// written: another operator, or this one in a write whose response was lost. The stored
// records win. If a stored record is this operator's own record of the same attempt, the edit
// of its handler is dropped, so that the attempt has one outcome.
func (s *Session) yieldToOthers(ctx context.Context, u *Update) error {
	if !u.changedByOthers || u.Cycle == nil {
		return nil
	}
	var err error
	u.finished, err = s.isFinished(ctx, u)
	s.state.dropEdits(func(edit execution.Edit) bool {
		if err != nil || !u.Cycle.Progress.Has(edit.ID) {
			return false // an event handler has no record
		}
		var overtaken bool
		overtaken, err = s.isOvertaken(ctx, u, edit.ID)
		return overtaken || u.finished
	})
	return err
}

// isFinished reports whether another operator has finished the cycle since the update was
// created.
func (s *Session) isFinished(ctx context.Context, u *Update) (bool, error) {
	base, _, err := s.writer.Records.Base(ctx, s.body, s.report)
	if err != nil {
		return false, err
	}
	released := u.Cycle.Reason == cause.Delete && !slices.Contains(s.body.Finalizers(), s.writer.finalizer())
	if !released && object.Equal(base, u.Cycle.Base) {
		return false, nil
	}
	s.report.Log.V(1).Info("Another operator has finished the same cycle; its records are kept.")
	return true, nil
}

// isOvertaken reports whether another operator has advanced the record of a handler since the
// update was created: with more attempts, or an end. The first record of a sub-handler depends on
// that of its parent: if another operator has removed the parent's, it has ended the cycle, and
// nothing would refer to the sub-handler's, and remove it.
func (s *Session) isOvertaken(ctx context.Context, u *Update, id string) (bool, error) {
	if !u.changedByOthers {
		return false, nil
	}
	theirs, err := s.writer.Records.Record(ctx, s.body, id, s.report)
	if err != nil {
		return false, err
	}
	before := u.Cycle.Progress.Load(id).Found()
	if before != nil || theirs != nil {
		return hasAdvanced(theirs, before), nil
	}
	parent := u.Cycle.ParentOf(id)
	if parent == "" || u.Cycle.Progress.Load(parent).Found() == nil {
		return false, nil
	}
	theirs, err = s.writer.Records.Record(ctx, s.body, parent, s.report)
	return err == nil && theirs == nil, err
}

// hasAdvanced reports whether a record contains an outcome that it did not contain before. A
// lifecycle that calls one handler at a time also stores records without an attempt: they must
// not replace the outcome of an attempt.
func hasAdvanced(theirs, before *storage.Record) bool {
	switch {
	case theirs == nil:
		return before != nil
	case before == nil || before.Purpose != theirs.Purpose:
		return theirs.Finished() || theirs.Retries > 0
	default:
		return theirs.Retries > before.Retries || theirs.Finished() && !before.Finished()
	}
}

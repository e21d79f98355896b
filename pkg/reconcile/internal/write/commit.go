package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/storage"
)

// maxTries limits the attempts to write one update in a pass. All attempts except the last
// have met a conflict or a rejection.
const maxTries = 6

// errGone ends an update of an object that no longer exists.
var errGone = errors.New("the object is gone")

// Write writes an update with all edits. If the status is a subresource, it writes the status
// first, so that a success is never recorded before its result is stored, and then everything
// else in one patch. If that fails, the update stays in the State, and must be written before
// any other work on the object.
func (s *Session) Write(ctx context.Context, u Update) (Outcome, error) {
	u.changedByOthers = s.changedByOthers
	if u.isReleased(s.body, s.writer.finalizer()) { // an earlier write of this pass has shown that
		s.state.Drop(handler.ErrGone)
		return Outcome{ChangedByOthers: true}, nil
	}
	before := s.state.pending
	if before != nil {
		u.refusedAt = before.refusedAt
	}
	s.state.pending = &u
	outcome, err := s.commit(ctx)
	if before != nil && before.unstored && u.Cycle == nil && !s.state.Gone() {
		s.state.pending = before // of a deletion, which goes on when the object is not suspended anymore, for example
	}
	return outcome, err
}

// Flush writes the update that an earlier pass could not write.
func (s *Session) Flush(ctx context.Context) (Outcome, error) {
	u := s.state.pending
	if u == nil {
		return Outcome{}, nil
	}
	if u.unstored { // the next update of this pass contains it
		u.changedByOthers = true
		return Outcome{}, s.dropOvertaken(ctx, u)
	}
	switch err := s.rebase(ctx, u, s.body); {
	case errors.Is(err, errReleased):
		return Outcome{}, nil
	case err != nil:
		return Outcome{}, err
	}
	outcome, err := s.commit(ctx)
	if s.body.Deleting() && isRefused(err) && !u.unstored {
		// The cycle that was handled before the deletion is over. The edits of its handlers are tried
		// again with the next update.
		s.report.Log.Info("The records of what was handled before the deletion cannot be stored, and are dropped.", "problem", err.Error())
		s.state.pending = nil
		return Outcome{}, nil
	}
	return outcome, err
}

// commit writes the pending update.
func (s *Session) commit(ctx context.Context) (Outcome, error) {
	u := s.state.pending
	before := s.body
	err := s.commitWithRetries(ctx, u)
	switch {
	case errors.Is(err, errGone):
		return Outcome{Gone: true}, nil
	case errors.Is(err, errReleased):
		return Outcome{ChangedByOthers: true}, nil
	case s.countInMemory(u, err):
		return Outcome{ChangedByOthers: s.changedByOthers}, nil
	case err != nil:
		return Outcome{}, err
	}
	outcome := Outcome{
		Cycle: u.Cycle, Calls: u.Calls, Ended: u.endsCycle(), Gone: s.state.gone,
		Changed: s.body != before, ChangedByOthers: s.changedByOthers,
	}
	if u.Cycle != nil {
		u.Cycle.Progress.MarkStored()
	}
	s.state.pending = nil
	for _, report := range s.written {
		report()
	}
	return outcome, nil
}

// commitWithRetries tries an update until it is written. The response determines what follows:
//
//	404                    confirmGone (session.go), or statusNotFound (dropped.go)
//	a rejection            isolateRejected (refusal.go)
//	another refusal        isolateForbidden, or reduce if the object is being deleted (refusal.go)
//	409, a conflict        reread and rebase (conflict.go), and the next try
//	any other, or none     reread, and the next pass
func (s *Session) commitWithRetries(ctx context.Context, u *Update) error {
	defer s.putBack(u)
	for range maxTries {
		err := s.try(ctx, u)
		switch {
		case err == nil:
			return s.withheldError(u)
		case apierrors.IsNotFound(err):
			confirmed := s.confirmGone(ctx, err)
			if confirmed == nil {
				return errGone
			}
			if !isStatusUnserved(err, confirmed) {
				return confirmed
			}
			s.statusNotFound = true
		case isRejected(err):
			if err := s.isolateRejected(ctx, u, err); err != nil && !(isRefused(err) && s.reduce(u, err)) {
				return err
			}
		case isRefused(err): // nothing was written
			if s.reduce(u, err) {
				continue
			}
			if err := s.isolateForbidden(ctx, u, err); err != nil {
				return err
			}
		case apierrors.IsConflict(err):
			if err := s.reread(ctx, u); err != nil {
				if isForbidden(err) { // nothing was written, so the next pass can use what the watch shows by then
					s.state.mustRead = false
				}
				return err
			}
		default:
			// The write may have been committed, or may still be: check this, and leave the
			// rest to a later pass, so that a failing server is not overloaded.
			if failure := s.reread(ctx, u); failure != nil {
				return errors.Join(err, failure)
			}
			return err
		}
	}
	return fmt.Errorf("other clients write to the object so often that all %d attempts to write it have failed", maxTries)
}

// try writes the update against the latest known version of the object.
func (s *Session) try(ctx context.Context, u *Update) error {
	s.written = nil
	if u.statusRecords != nil {
		return s.send(ctx, u, "status", patch.Minimal(s.body.Raw(), u.statusRecords), nil)
	}
	if err := s.yieldToOthers(ctx, u); err != nil {
		return err
	}

	// The conditions say whether the next cycle follows. They are written before the records, so this
	// is computed first.
	u.continues = false
	if s.hasConditions(u) && u.endsCycle() {
		if err := s.writer.Records.End(ctx, u.Cycle, s.body, storage.Patch{}, s.report); err != nil {
			return unstorable(err)
		}
		u.continues = !u.Cycle.Settled
	}

	// The status of all edits goes first, if it is a subresource. What is decided here holds for all writes of this
	// attempt, except what a response changes: s.body, and whether the status is a subresource.
	deletes := u.deletesObject(s.body, s.writer.finalizer())
	separate := s.target.StatusSubresource
	main, status := s.editsPatch(u)
	if err := s.send(ctx, u, "status", status, status); err != nil {
		return err
	}
	if len(status) > 0 && len(patch.Minimal(s.body.Raw(), u.conditions)) > 0 {
		s.refuseConditions("the schema of the resource does not have their fields anymore.")
	}
	if separate && !u.deletesObject(s.body, s.writer.finalizer()) {
		for i := range s.state.edits {
			s.state.edits[i].StatusWritten = true
		}
	}

	// One patch has the other edits, the records, and the finalizer.
	records, err := s.recordsPatch(ctx, u, main)
	if err != nil {
		return unstorable(err)
	}
	if len(main) > 0 || len(records) > 0 {
		s.writer.Records.PurgeTouch(s.body, records)
	}
	var inStatus map[string]any
	if s.target.StatusSubresource {
		records, inStatus = patch.SplitStatus(records)
	}
	merge := patch.Minimal(s.body.Raw(), main, records)
	if err := s.send(ctx, u, "", merge, main); err != nil {
		return err
	}
	if deletes { // the response has the same version as before, so nothing else reveals the deletion
		s.state.deleted = isDeleted(s.body)
		s.state.MarkGone()
		return nil
	}
	if err := s.writeDroppedStatus(ctx, u, merge, main); err != nil {
		return err
	}
	s.state.finishEdits() // a later conflict must not repeat them

	// Storages in the status are an exception, and need a separate write. The records are not computed again before
	// it: after the end of a cycle, the object has the next one already.
	u.statusRecords = inStatus
	return s.send(ctx, u, "status", patch.Minimal(s.body.Raw(), inStatus), nil)
}

// send writes one merge patch unless it is empty, to the main part or to the status. It
// remembers the handlers' part until there is a response.
func (s *Session) send(ctx context.Context, u *Update, part string, merge, theirs map[string]any) error {
	if len(merge) == 0 {
		return nil
	}
	text, err := s.bind(merge)
	if err != nil {
		return err
	}
	c := s.examineContention(ctx, merge)
	s.state.mustRead = true // until a response says otherwise
	before := u.inFlight
	if theirs != nil {
		sent := inFlight{merge: theirs, status: part != "", version: s.body.ResourceVersion()}
		for _, edit := range s.state.edits {
			sent.patches = append(sent.patches, edit.Patch)
		}
		u.inFlight = slices.Concat(before, []inFlight{sent})
	}
	var end func(metrics.Answer, error)
	if s.target.Trace != nil {
		ctx, end = s.target.Trace(ctx, s.subresourceOf(part), u.reason(part))
	}
	s.target.beginWrite()
	snapshot, err := s.target.API.Patch(ctx, s.target.Key.NamespacedName, s.subresourceOf(part), text)
	s.endWrite(merge, snapshot, err)
	s.writer.Metrics.Write(s.target.Key.Resource, u.reason(part), answerOf(err))
	if end != nil {
		end(answerOf(err), err)
	}
	if err != nil {
		if isRejected(err) || isForbidden(err) || apierrors.IsConflict(err) {
			u.inFlight = before                          // nothing was written
			s.state.mustRead = apierrors.IsConflict(err) // the object has changed
		}
		if s.subresourceOf(part) != "" && apierrors.IsNotFound(err) {
			return &statusNotFoundError{err}
		}
		return err
	}
	s.body = snapshot.Body()
	s.checkHistory(s.body.ResourceVersion())
	s.state.confirm(s.body)
	u.inFlight = nil // earlier writes are bound to an outdated version
	s.recordContention(c, merge)
	if part != s.subresourceOf(part) {
		return s.checkStatusStored(merge)
	}
	if !s.target.StatusSubresource {
		merge, _ = patch.SplitStatus(merge) // writeDroppedStatus cares for the status
	}
	s.warnPruned(merge)
	return nil
}

// endWrite tells the observer what has become of a write.
func (s *Session) endWrite(merge map[string]any, snapshot *object.Snapshot, err error) {
	switch o := s.target.Observer; {
	case o == nil:
	case err == nil:
		o.EndWrite(s.body, snapshot.Body(), true)
	case isRejected(err) || isForbidden(err) || apierrors.IsConflict(err): // nothing was written
		o.EndWrite(s.body, nil, true)
	default:
		o.EndWrite(s.body, object.NewBody(patch.ApplyMerge(s.body.Raw(), merge)), false)
	}
}

// bind makes the patch valid only for the version that it was computed for.
func (s *Session) bind(merge map[string]any) ([]byte, error) {
	version := map[string]any{"metadata": map[string]any{"resourceVersion": s.body.ResourceVersion()}}
	return json.Marshal(patch.ApplyMerge(merge, version))
}

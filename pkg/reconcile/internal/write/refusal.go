package write

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/storage"
)

// unstorableError is an error of the operator's own storages, before anything is sent.
type unstorableError struct{ err error }

func (e *unstorableError) Error() string { return e.err.Error() }

func (e *unstorableError) Unwrap() error { return e.err }

// isRefused reports whether a write has no effect for a reason that a repetition does not
// change: its content is rejected, a permission is missing, or a storage cannot store.
func isRefused(err error) bool {
	var unstorable *unstorableError
	return isRejected(err) || isForbidden(err) || errors.As(err, &unstorable)
}

// isForbidden reports whether the server has refused a write before it looked at the content.
func isForbidden(err error) bool {
	return isStatusOfServer(err) && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err))
}

// What is dropped from the writes to an object that is being deleted is reported once.
const (
	editsRefused   = "\x00edits refused"
	recordsRefused = "\x00records refused"
)

// refusalPatience is the time for which the writes to an object that is being deleted must be
// refused before anything is dropped: a policy or a role may be corrected.
const refusalPatience = time.Minute

// reduce leaves out of an update what cannot be stored, if the object is being deleted: nothing
// must hold a deletion that needs no storing. First go the edits of handlers and the conditions,
// which are not visible for long; then the records, if the finalizer is removed. It reports
// whether something else is left to try.
func (s *Session) reduce(u *Update, refusal error) bool {
	switch {
	case u.isPartial() || !s.body.Deleting() || u.refusedAt.IsZero() || time.Since(u.refusedAt) < refusalPatience:
		return false
	case !u.withoutEdits && (len(s.state.edits) > 0 || s.hasConditions(u)):
		u.withoutEdits = true
		s.reportRefused(editsRefused, "What handlers have written or returned cannot be stored, and is dropped, because the object is being deleted.", refusal)
		s.state.finishEdits()
		return true
	case !u.onlyFinalizer && u.removesFinalizer():
		u.onlyFinalizer = true
		s.reportRefused(recordsRefused, "The end of the deletion handlers cannot be stored; the object is released nevertheless.", refusal)
		return true
	}
	return false
}

// countInMemory reports whether the attempts of deletion handlers count in memory, because no
// record can be stored. It is false for other updates.
func (s *Session) countInMemory(u *Update, refusal error) bool {
	if !s.body.Deleting() || !isRefused(refusal) {
		return false
	}
	if u.refusedAt.IsZero() {
		u.refusedAt = time.Now()
	}
	if u.Cycle == nil || u.Cycle.Reason != cause.Delete {
		return false
	}
	u.unstored = true
	s.reportRefused(recordsRefused, "The progress of the deletion handlers cannot be stored. Their attempts are counted in memory, and begin anew if the operator is restarted.", refusal)
	return !u.Cycle.Progress.Done()
}

// supersede drops an update that could not be written before the object was marked for deletion:
// its cycle is over. The edits of its handlers are tried again with the next update.
func (s *Session) supersede(refusal error) {
	s.report.Log.Info("The records of what was handled before the deletion cannot be stored, and are dropped.", "problem", refusal.Error())
	s.state.pending = nil
}

func (s *Session) reportRefused(once, message string, refusal error) {
	if s.report.Object.First(once) {
		s.report.Log.Error(refusal, message)
	}
}

// Unstored returns the records of deletion handlers that could not be stored, by their ids. There
// are nearly never any.
func (s *State) Unstored() map[string]*storage.Record {
	if s.pending == nil || !s.pending.unstored {
		return nil
	}
	return s.pending.Cycle.Progress.Records()
}

func storeFailed(err error) error {
	if err == nil {
		return nil
	}
	return &unstorableError{fmt.Errorf("the progress of the handlers cannot be stored: %w", err)}
}

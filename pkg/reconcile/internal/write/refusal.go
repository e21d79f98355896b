package write

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/storage"
)

// The API server refuses a write in one of these ways, which a repetition does not change:
//
//	it rejects the content      the handler of the rejected edit fails, and the others are written
//	a permission is missing     the forbidden edits are withheld, because an administrator can grant it
//	nothing can be stored       if the object is being deleted, less and less is written

// isRejected reports whether the server rejects the content of a write, so that retrying is
// useless.
func isRejected(err error) bool {
	if !isStatusOfServer(err) {
		return false // of a proxy, for example
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		(apierrors.IsForbidden(err) && !lacksPermission(err)) || apierrors.IsRequestEntityTooLargeError(err) || isTooLarge(err)
}

// lacksPermission reports whether the operator was forbidden to write without a reason in the
// content, as for the lack of a permission: an administrator can grant it, and then the same
// write succeeds. Policies name their causes, and webhooks that deny a write do not name the
// object; everything else may be about permissions, such as those that admission plugins ask for.
func lacksPermission(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name != "" && len(details.Causes) == 0
}

// isForbidden reports whether the server has refused a write before it looked at the content.
func isForbidden(err error) bool {
	return isStatusOfServer(err) && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err))
}

// isTooLarge reports whether etcd rejects an object for its size. The API server returns a
// separate error with the text of etcd.
func isTooLarge(err error) bool {
	passedOn := apierrors.IsInternalError(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
	return passedOn && (strings.Contains(err.Error(), "request is too large") || strings.Contains(err.Error(), "message larger than max"))
}

// isRefused reports whether a write has no effect for a reason that a repetition does not
// change: its content is rejected, a permission is missing, or a storage cannot store.
func isRefused(err error) bool {
	var unstorable *unstorableError
	return isRejected(err) || isForbidden(err) || errors.As(err, &unstorable)
}

// unstorableError is an error of the operator's own storages, before anything is sent.
type unstorableError struct{ err error }

// unstorable returns the error of a storage as one that a repetition does not change.
func unstorable(err error) error {
	return &unstorableError{fmt.Errorf("the progress of the handlers cannot be stored: %w", err)}
}

func (e *unstorableError) Error() string { return e.err.Error() }

func (e *unstorableError) Unwrap() error { return e.err }

// isolateRejected finds out which edits cause the rejection of a write. It asks the server to
// validate the records alone, and then with one more edit at a time, without storing anything,
// so that the valid edits are written together with the records. A rejected edit counts as a
// failure of its handler. If what the server accepts changes meanwhile, a later pass decides. If
// the server would accept all edits, the rejection must repeat in a later pass before the largest
// edit is blamed: etcd's limit for sizes is not a part of validations.
func (s *Session) isolateRejected(ctx context.Context, u *Update, rejection error) error {
	refused, err := s.isolateConditions(ctx, u)
	if refused || err != nil {
		return err
	}
	suspects := s.state.edits
	s.state.edits = nil
	u.withheld.all = suspects
	tried := 0
	defer func() { s.state.edits = append(s.state.edits, suspects[tried:]...) }() // also after a panic of a storage
	if err := s.dryRun(ctx, u); err != nil || len(suspects) == 0 {
		if err != nil && !isRejected(err) {
			return err
		}
		return fmt.Errorf("the API server rejects the operator's own records: %w", rejection)
	}
	for tried < len(suspects) {
		tried++
		if err := s.tryEdit(ctx, u, suspects[tried-1]); err != nil {
			return err
		}
	}
	if len(s.state.edits) == len(suspects) {
		if !u.rejected { // most likely it passes
			u.rejected = true
			return rejection
		}
		largest := s.state.largestEdit(s.body.Raw())
		s.failHandler(u, largest, rejection)
		s.state.drop(largest)
	}
	return nil
}

// refuseConditions gives the conditions of the object up, because the server rejects or drops
// them. They belong to no handler, so none fails.
func (s *Session) refuseConditions(problem string) {
	const message = "The conditions of kopf.Conditions cannot be stored in the status of the object, so it shows nothing about its handlers until the operator is restarted: "
	s.report.Object.First(conditionsRefused)
	s.report.Log.Info(message + problem)
	s.report.Event(s.body, report.Warning, "ConditionsRefused", message+problem)
}

// isolateConditions finds out whether the conditions cause a rejection. It reports true after
// giving them up.
func (s *Session) isolateConditions(ctx context.Context, u *Update) (refused bool, err error) {
	edits := s.state.edits
	s.state.edits = nil
	defer func() { s.state.edits = edits }()
	_, status := s.editsPatch(u)
	err = s.dryRunPatch(ctx, "status", status)
	if !isRejected(err) {
		return false, err
	}
	s.refuseConditions(err.Error())
	return true, nil
}

// tryEdit asks the server whether it would accept one more edit, and drops the edit if not. A
// rejection is the fault of that edit only if the server still accepts the others: a policy can
// begin at any moment, and reject any of them. An edit for which a permission is missing is
// withheld.
func (s *Session) tryEdit(ctx context.Context, u *Update, next call.Edit) error {
	accepted := s.state.edits
	tried := append(slices.Clip(s.state.edits), next)
	s.state.edits = tried
	left, err := leftOf(next, s.body.Raw())
	if err == nil && len(left) == 0 {
		return nil // it is written already
	}
	rejection := s.dryRun(ctx, u)
	if lacksPermission(rejection) {
		s.state.edits = accepted
		u.withhold(rejection, next)
		return nil
	}
	if !isRejected(rejection) || len(s.state.edits) == len(accepted) { // its transformation has failed
		return rejection
	}
	if err := s.dryRunWith(ctx, u, accepted); err != nil {
		return err
	}
	s.failHandler(u, next, rejection)
	s.state.drop(next)
	return nil
}

// dryRunWith is dryRun with other edits than those of the state, which keeps them, also after a
// panic of a storage.
func (s *Session) dryRunWith(ctx context.Context, u *Update, edits []call.Edit) error {
	all := s.state.edits
	s.state.edits = edits
	defer func() { s.state.edits = all }()
	return s.dryRun(ctx, u)
}

// dryRun asks the server whether it would accept the update with the current edits.
func (s *Session) dryRun(ctx context.Context, u *Update) error {
	main, status := s.editsPatch(u)
	records, err := s.recordsPatch(ctx, u, main)
	if err != nil {
		return err
	}
	var inStatus map[string]any
	if s.target.StatusSubresource {
		records, inStatus = patch.SplitStatus(records)
	}
	if err := s.dryRunPatch(ctx, "status", status); err != nil {
		return err
	}
	if err := s.dryRunPatch(ctx, "", patch.Minimal(s.body.Raw(), main, records)); err != nil || len(s.state.edits) > 0 {
		return err
	}
	return s.dryRunPatch(ctx, "status", patch.Minimal(s.body.Raw(), inStatus))
}

// dryRunPatch asks about one patch of the main part or of the status.
func (s *Session) dryRunPatch(ctx context.Context, part string, merge map[string]any) error {
	if len(merge) == 0 {
		return nil
	}
	text, err := s.bind(merge)
	if err != nil {
		return err
	}
	err = s.target.API.DryRun(ctx, s.target.Key.NamespacedName, s.subresourceOf(part), text)
	s.writer.Metrics.Write(s.target.Key.Resource, metrics.Check, answerOf(err))
	return err
}

// largestEdit returns the edit of which the most is left to be written, which is the likely cause
// of rejections by etcd for the size of the object.
func (s *State) largestEdit(body map[string]any) (largest call.Edit) {
	size := -1
	for _, edit := range s.edits {
		left, _ := leftOf(edit, body)
		text, _ := json.Marshal(left)
		if len(text) > size {
			largest = edit
			size = len(text)
		}
	}
	return largest
}

// leftOf returns what is left to be written of an edit.
func leftOf(edit call.Edit, body map[string]any) (map[string]any, error) {
	merge, err := resolve(edit, body)
	return patch.Minimal(body, merge), err
}

// drop removes one edit.
func (s *State) drop(one call.Edit) {
	s.dropEdits(func(edit call.Edit) bool { return edit.Patch == one.Patch })
}

// failHandler records the failure of the handler whose edit cannot be written. An error of a
// transformation counts as if the handler had returned it. All other failures are final: the
// handler would want the same again.
func (s *Session) failHandler(u *Update, edit call.Edit, err error) {
	if edit.Refused != nil {
		edit.Refused(err)
		return
	}
	if edit.BestEffort {
		s.report.Log.V(1).Info("The object has no room for a condition.", "problem", err.Error())
		return
	}
	if edit.ID == "" { // statusOf has made it
		s.report.Log.Error(err, "The status that handlers have set cannot be written to the object.")
		s.report.Event(s.body, report.Warning, "WriteRejected", fmt.Sprintf("The status that handlers have set was rejected: %s", err))
		return
	}
	if edit.Failed != nil {
		edit.Failed(err)
	}
	var transform *patch.TransformError
	if errors.As(err, &transform) && edit.Revise != nil {
		outcome := edit.Revise(err)
		if u.Cycle.ReviseHandler(edit.ID, outcome) || u.Calls.ReviseHandler(edit.ID, outcome) {
			s.report.Outcome(s.body, edit.ID, outcome)
			return
		}
	}
	if !u.Cycle.FailHandler(edit.ID, err) {
		u.Calls.FailHandler(edit.ID, err)
	}
	id := s.report.ReportedID(edit.ID)
	s.report.Log.Error(err, "The edit of the handler cannot be written to the object; the handler failed.", "handler", id)
	s.report.Event(s.body, report.Warning, "WriteRejected", fmt.Sprintf("Handler %s failed: its edit was rejected: %s", id, err))
}

// withheld is the part of an update that a commit leaves out, because the API server forbids it for
// what seems to be the lack of a permission. Only the progress of the other handlers is written
// then: their edits and records, as if the pass went on. The update stays in the State, and the
// next pass tries all of it again.
type withheld struct {
	// refusal is the response of the server. Nil means that the update is complete.
	refusal error
	edits   []call.Edit
	// all contains all edits, in the order of the calls of their handlers.
	all []call.Edit
}

// sort sorts edits in the order of the calls of their handlers.
func (w *withheld) sort(edits []call.Edit) {
	place := func(one call.Edit) int {
		return slices.IndexFunc(w.all, func(edit call.Edit) bool { return edit.Patch == one.Patch })
	}
	slices.SortStableFunc(edits, func(a, b call.Edit) int { return cmp.Compare(place(a), place(b)) })
}

// isPartial reports whether something is withheld.
func (u *Update) isPartial() bool { return u.withheld.refusal != nil }

func (u *Update) withhold(refusal error, edits ...call.Edit) {
	u.withheld.refusal = refusal
	u.withheld.edits = append(u.withheld.edits, edits...)
	u.withheld.sort(u.withheld.edits)
}

// isWithheld reports whether the record of a handler must not be stored, because an edit of it is
// withheld. The records of a handler and of its sub-handlers are stored together.
func (u *Update) isWithheld(id string) bool {
	return slices.ContainsFunc(u.withheld.edits, func(edit call.Edit) bool { return u.topOf(edit.ID) == u.topOf(id) })
}

// topOf returns the declared handler that a sub-handler belongs to, or else the id itself.
func (u *Update) topOf(id string) string {
	if u.Cycle == nil {
		return id
	}
	return cmp.Or(u.Cycle.TopOf(id), id)
}

// isolateForbidden finds out which edits are forbidden, and withholds them and the conditions. An
// administrator can grant what is missing, so no handler fails. If not even the records alone are
// permitted, nothing is tried but these: the role lacks the permission for every write.
func (s *Session) isolateForbidden(ctx context.Context, u *Update, refusal error) error {
	if u.isPartial() || !lacksPermission(refusal) || u.deletesObject(s.body, s.writer.finalizer()) {
		return refusal
	}
	suspects := s.state.edits
	withConditions := s.hasConditions(u)
	if len(suspects) == 0 && !withConditions {
		return refusal
	}
	s.state.edits = nil
	u.withheld.all = suspects
	u.withhold(refusal, suspects...)
	parts := len(suspects)
	if withConditions {
		parts++
	}
	if parts == 1 { // it is withheld, so possibly nothing is left to write
		records, err := s.recordsPatch(ctx, u, nil)
		if err != nil || len(patch.Minimal(s.body.Raw(), records)) == 0 {
			return err
		}
	}
	if err := s.dryRun(ctx, u); err != nil {
		return err
	}
	for _, next := range suspects {
		if !s.isResolvable(next) {
			continue // it builds on an edit that is withheld
		}
		u.withheld.edits = slices.DeleteFunc(u.withheld.edits, func(edit call.Edit) bool { return edit.Patch == next.Patch })
		if err := s.tryEdit(ctx, u, next); err != nil {
			return err
		}
	}
	if len(u.withheld.edits) == 0 && !withConditions {
		return refusal // the policy has ended, or is not for dry runs
	}
	return nil
}

// isResolvable reports whether an edit can be computed after those that are not withheld.
func (s *Session) isResolvable(next call.Edit) bool {
	wanted := s.body.Raw()
	for _, edit := range append(slices.Clip(s.state.edits), next) {
		merge, err := resolve(edit, wanted)
		if err != nil {
			return false
		}
		wanted = patch.ApplyMerge(wanted, merge)
	}
	return true
}

// withheldError returns the refusal of what the commit has left out, or nil if it is complete.
func (s *Session) withheldError(u *Update) error {
	if !u.isPartial() {
		return nil
	}
	var ids []string
	for _, edit := range u.withheld.edits {
		if edit.ID != "" {
			ids = append(ids, s.report.ReportedID(edit.ID))
		}
	}
	if len(ids) == 0 {
		return fmt.Errorf("the status waits for a permission: %w", u.withheld.refusal)
	}
	return fmt.Errorf("the edits of these handlers wait for a permission (%s): %w", strings.Join(ids, ", "), u.withheld.refusal)
}

// putBack returns the withheld edits to the State, except those whose authors decide what follows.
func (s *Session) putBack(u *Update) {
	w := u.withheld
	u.withheld = withheld{}
	if s.state.pending != u { // the object is gone or released
		for _, edit := range w.edits {
			edit.Refuse(handler.ErrGone)
		}
		return
	}
	for _, edit := range w.edits {
		if edit.Refused != nil {
			edit.Refuse(w.refusal)
			continue
		}
		s.state.edits = append(s.state.edits, edit)
	}
	w.sort(s.state.edits)
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
	case len(s.state.edits) > 0 || s.hasConditions(u):
		u.withoutEdits = true
		s.reportRefused(editsRefused, "What handlers have written or returned cannot be stored, and is dropped, because the object is being deleted.", refusal)
		s.state.refuseEdits(refusal)
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

// Unstored returns the records of deletion handlers that could not be stored, by their ids. There
// are nearly never any.
func (s *State) Unstored() map[string]*storage.Record {
	if s.pending == nil || !s.pending.unstored {
		return nil
	}
	return s.pending.Cycle.Progress.Records()
}

func (s *Session) reportRefused(once, message string, refusal error) {
	if s.report.Object.First(once) {
		s.report.Log.Error(refusal, message)
	}
}

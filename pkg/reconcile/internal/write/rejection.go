package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// isolateRejected finds out which edits cause the rejection of a write. It asks the server to
// validate the records alone, and then with one more edit at a time, without storing anything,
// so that the valid edits are written together with the records. A rejected edit counts as a
// failure of its handler. If what the server accepts changes meanwhile, a later pass decides. If
// the server would accept all edits, the rejection must repeat in a later pass before the largest
// edit is blamed: etcd's limit for sizes is not a part of validations.
func (s *Session) isolateRejected(ctx context.Context, u *Update, rejection error) error {
	if refused, err := s.isolateConditions(ctx, u); refused || err != nil {
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

// tryEdit asks the server whether it would accept one more edit, and drops the edit if not. A
// rejection is the fault of that edit only if the server still accepts the others: a policy can
// begin at any moment, and reject any of them. An edit for which a permission is missing is
// withheld.
func (s *Session) tryEdit(ctx context.Context, u *Update, next call.Edit) error {
	accepted := s.state.edits
	tried := append(slices.Clip(s.state.edits), next)
	s.state.edits = tried
	if left, err := leftOf(next, s.body.Raw()); err == nil && len(left) == 0 {
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
	var aside map[string]any
	if s.target.StatusSubresource {
		records, aside = patch.SplitStatus(records)
	}
	if err := s.dryRunPatch(ctx, "status", status); err != nil {
		return err
	}
	if err := s.dryRunPatch(ctx, "", patch.Minimal(s.body.Raw(), main, records)); err != nil || len(s.state.edits) > 0 {
		return err
	}
	return s.dryRunPatch(ctx, "status", patch.Minimal(s.body.Raw(), aside))
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
	if edit.BestEffort {
		s.report.Log.V(1).Info("The object has no room for a condition.", "problem", err.Error())
		return
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

// isTooLarge reports whether etcd rejects an object for its size. The API server returns a
// separate error with the text of etcd.
func isTooLarge(err error) bool {
	passedOn := apierrors.IsInternalError(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
	return passedOn && (strings.Contains(err.Error(), "request is too large") || strings.Contains(err.Error(), "message larger than max"))
}

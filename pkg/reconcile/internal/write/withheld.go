package write

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

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
	return slices.ContainsFunc(u.withheld.edits, func(edit call.Edit) bool { return u.parentOf(edit.ID) == u.parentOf(id) })
}

// parentOf returns the declared handler that a sub-handler belongs to, or else the id itself.
func (u *Update) parentOf(id string) string {
	if u.Cycle == nil {
		return id
	}
	return cmp.Or(u.Cycle.ParentOf(id), id)
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
	if is, err := s.isIndivisible(ctx, u, withConditions); is || err != nil {
		return err
	}
	if err := s.dryRun(ctx, u); err != nil {
		return err
	}
	for _, next := range suspects {
		if !s.isResolvable(next) {
			continue // it builds on an edit that is withheld
		}
		u.withheld.edits = without(u.withheld.edits, next)
		if err := s.tryEdit(ctx, u, next); err != nil {
			return err
		}
	}
	if len(u.withheld.edits) == 0 && !withConditions {
		return refusal // the policy has ended, or is not for dry runs
	}
	return nil
}

// isIndivisible reports whether an update that was forbidden has only one part: it is withheld, and
// nothing is left to write.
func (s *Session) isIndivisible(ctx context.Context, u *Update, withConditions bool) (bool, error) {
	parts := len(u.withheld.edits)
	if withConditions {
		parts++
	}
	if parts > 1 {
		return false, nil
	}
	records, err := s.recordsPatch(ctx, u, nil)
	return len(patch.Minimal(s.body.Raw(), records)) == 0, err
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

func without(edits []call.Edit, one call.Edit) []call.Edit {
	return slices.DeleteFunc(edits, func(edit call.Edit) bool { return edit.Patch == one.Patch })
}

// withheldError returns the refusal of what the commit has left out, or nil if it is complete.
func (s *Session) withheldError(u *Update) error {
	if !u.isPartial() {
		return nil
	}
	var ids []string
	for _, edit := range u.withheld.edits {
		ids = append(ids, s.report.ReportedID(edit.ID))
	}
	if len(ids) == 0 {
		return fmt.Errorf("the conditions wait for a permission: %w", u.withheld.refusal)
	}
	return fmt.Errorf("the edits of these handlers wait for a permission (%s): %w", strings.Join(ids, ", "), u.withheld.refusal)
}

// putBack returns the withheld edits to the State.
func (s *Session) putBack(u *Update) {
	w := u.withheld
	u.withheld = withheld{}
	if s.state.pending != u { // the object is gone or released
		for _, edit := range w.edits {
			edit.Finish()
		}
		return
	}
	s.state.edits = append(s.state.edits, w.edits...)
	w.sort(s.state.edits)
}

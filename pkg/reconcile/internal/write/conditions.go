package write

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/storage"
)

// conditionsRefused is the report after which the conditions of an object are not written
// anymore.
const conditionsRefused = "conditions refused"

// hasConditions reports whether the update writes the conditions of the object.
func (s *Session) hasConditions(u *Update) bool {
	return u.Decision.Conditions != nil && !u.withoutEdits && !u.isPartial() && !s.report.Object.Has(conditionsRefused)
}

// foresee finds out whether the next cycle follows this write, because the conditions are
// written before the records.
func (s *Session) foresee(ctx context.Context, u *Update) (continues bool, err error) {
	if !s.hasConditions(u) || !u.endsCycle() {
		return false, nil
	}
	err = s.writer.Records.End(ctx, u.Cycle, s.body, storage.Patch{}, s.report)
	return !u.Cycle.Settled, err
}

// withConditions adds the conditions to an object with the edits of its handlers. A handler
// that changes more than the status makes the pass continue.
func (s *Session) withConditions(u *Update, edited map[string]any) map[string]any {
	u.conditions = nil
	if !s.hasConditions(u) {
		return edited
	}
	main, _ := patch.SplitStatus(patch.Difference(s.body.Raw(), edited))
	u.conditions = u.Decision.Conditions.Amend(s.body.Raw(), edited, u.continues || len(main) > 0)
	return patch.ApplyMerge(edited, u.conditions)
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

// checkConditions checks whether the server has stored the conditions.
func (s *Session) checkConditions(u *Update) {
	if len(patch.Minimal(s.body.Raw(), u.conditions)) > 0 {
		s.refuseConditions("the schema of the resource does not have their fields anymore.")
	}
}

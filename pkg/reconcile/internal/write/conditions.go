package write

import (
	"context"

	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// conditionsRefused is the report after which the conditions of an object are not written
// anymore.
const conditionsRefused = "conditions refused"

// hasConditions reports whether the update writes the conditions of the object.
func (s *Session) hasConditions(u *Update) bool {
	return u.Decision.Conditions != nil && !u.withoutEdits && !u.isPartial() && !s.report.Object.Has(conditionsRefused)
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

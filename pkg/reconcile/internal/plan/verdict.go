package plan

import (
	"slices"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
)

// Verdict returns why a change handler is called according to the plan, or why not.
func (p *Plan) Verdict(d *handler.Declaration, suspension requests.Suspension, now time.Time) verdict.Verdict {
	f := verdict.Facts{Declaration: d, Cause: &p.Cause, Now: now, Suspended: suspension.Active, SuspendedUntil: suspension.Until}
	state := p.Cycle.Progress.Load(d.ID)
	stored := state.Stored()
	if stored != nil && stored.Purpose == p.Reason {
		f.Record = &verdict.Record{Attempts: stored.Retries, Message: stored.Message, Delayed: stored.Delayed, Success: stored.Success, Failure: stored.Failure}
		if state.RemainingDelay(now) == 0 {
			f.Record.Delayed = time.Time{} // a request has ended the wait
		}
	}
	f.TakesPart = slices.Contains(p.Handlers, d)
	f.Misfit = p.Cycle.Progress.Misfit(d.ID)
	if f.Record == nil || f.Record.Attempts == 0 {
		turn := p.Cycle.Progress.TurnOf(d, p.Handlers)
		f.WaitsFor = turn.Waits
		f.Skip = turn.Never
	}
	for _, m := range p.Misfits {
		if m.Handler == d { // if it waits, f.Misfit says so, too, and comes first
			f.Skip = m.Err.Error()
		}
	}
	return verdict.Of(f)
}

// IsResponsible reports whether any handler selects the object by its metadata: another
// operator may handle the others.
func (p *Plan) IsResponsible(h *Handlers) bool {
	return p.InScope || len(p.Background)+len(p.Misfits) > 0 ||
		slices.ContainsFunc(h.Changing, func(d *handler.Declaration) bool { return p.Concerns(d) })
}

package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
)

// record writes the outcomes of the handlers, and returns whether the pass continues, or when
// the next one must begin. A pass does not continue after an error.
func (p *pass) record(ctx context.Context, c *cycle) (again bool, next nextPass, err error) {
	if c.NothingToDo() {
		return p.leaveAlone(ctx, c)
	}
	update := p.update(c)
	p.reportHeldDeletion(c)
	edited := p.object.writes.HasEdits()
	outcome, err := p.session.Write(ctx, update)
	if err != nil {
		return false, nextPass{}, err
	}
	p.finishCycle(outcome)
	if outcome.Ended && !outcome.Gone {
		p.observeRevisions(c, p.session.Body())
	}
	if outcome.Gone || p.term.isStopping() {
		return false, nextPass{}, nil
	}
	if !outcome.Ended {
		delay, isWaiting := c.Cycle.Progress.NextDelay()
		again := isWaiting && delay == 0 || !isWaiting && outcome.ChangedByOthers
		return again, soonest(nextPass{isWaiting, delay}, c.calls.next()), nil
	}
	if !p.object.handled {
		return true, nextPass{}, nil // resume handlers must be called
	}
	// Changes since the start of the cycle, including those by the handlers, are
	// handled as the next change.
	if edited || outcome.ChangedByOthers || !c.Cycle.Settled {
		return outcome.Changed, c.calls.next(), nil
	}
	p.markReconciled()
	return false, c.calls.next(), nil
}

// leaveAlone is record for a pass that has nothing to do.
func (p *pass) leaveAlone(ctx context.Context, c *cycle) (again bool, next nextPass, err error) {
	edited := p.object.writes.HasEdits()
	outcome, err := p.session.Write(ctx, p.updateAlone(c))
	p.finishCycle(outcome)
	if err != nil {
		return false, nextPass{}, err
	}
	again = (edited || outcome.ChangedByOthers) && outcome.Changed && !outcome.Gone
	if !again { // what is gone is forgotten at the end of the pass
		p.markReconciled()
	}
	if p.term.isStopping() {
		return false, nextPass{}, nil
	}
	return again, c.calls.next(), nil
}

// markReconciled records that this version of the object needs no more work.
func (p *pass) markReconciled() { p.object.reconciledVersion = p.session.Body().ResourceVersion() }

// finishCycle reports what was written and, if the cycle has ended, its end.
func (p *pass) finishCycle(written write.Outcome) {
	if written.Calls != nil {
		written.Calls.Done()
	}
	c := written.Cycle
	if c == nil {
		return
	}
	for _, id := range c.Unreported {
		p.report.Succeeded(p.session.Body(), id)
	}
	c.Unreported = nil
	if !written.Ended {
		return
	}
	// The object is handled when this process has called all its resume handlers. If an earlier process began
	// the cycle, it may have called them, but the results in its memory are lost. They are then called in a
	// separate cycle, except for those that this process has called. If the next cycle has handlers that are
	// ahead, the earlier process may have called them, too.
	p.object.handled = !p.object.startedByPredecessor || c.Reason == cause.Delete
	p.object.startedByPredecessor = p.object.startedByPredecessor && c.HasNext
	p.engine.spans.endHandled(p.key, c.Progress)
	if !c.Called && !c.Skipped {
		return
	}
	succeeded, failed := c.Progress.Counts()
	message := fmt.Sprintf("The %s is processed: %d succeeded; %d failed.", c.Reason.Noun(), succeeded, failed)
	p.report.Log.Info(message)
	p.report.Event(p.session.Body(), report.Normal, ReasonCycleFinished, message)
}

// update returns the update of the cycle in its current state. Its decisions are repeated
// for each version of the object that it is written to.
func (p *pass) update(c *cycle) write.Update {
	calls := c.calls.update()
	return write.Update{
		Cycle: c.Cycle, Calls: calls, Stopping: p.term.isStopping(), Decision: c.DecideEnd(c.Plan, p.circumstances(c, calls)),
		Decide: func(ctx context.Context, body *object.Body) (plan.Decision, error) {
			now, err := p.plan(ctx, body)
			if err != nil {
				return plan.Decision{}, err
			}
			return c.DecideEnd(now.Plan, p.circumstances(c, calls)), nil
		},
	}
}

// updateAlone returns the update of a pass that has nothing to do.
func (p *pass) updateAlone(c *cycle) write.Update {
	calls := c.calls.update()
	return write.Update{
		Calls: calls, Decision: c.DecideAtRest(p.circumstances(c, calls)),
		Decide: func(ctx context.Context, body *object.Body) (plan.Decision, error) {
			now, err := p.plan(ctx, body)
			if err != nil || !now.NothingToDo() {
				return plan.Decision{}, err // the next round handles it
			}
			return now.DecideAtRest(p.circumstances(now, calls)), nil
		},
	}
}

// circumstances returns what a decision about a write depends on, in addition to plans.
func (p *pass) circumstances(c *cycle, calls *record.Calls) plan.Circumstances {
	s := plan.Circumstances{
		Key: p.key, Handlers: p.resource.Handlers, Calls: calls, DaemonsRunning: p.object.background.areDaemonsRunning(),
		Revisions: p.engine.revisions, Now: time.Now(),
	}
	s.Children.Unready, s.Children.Broken = p.engine.converger.Unready(c.CallContext.Body.UID())
	return s
}

// needsFinalizerAlone reports whether the finalizer must be added by a separate write: before any handler is
// called, and before what can be refused while the finalizer is not.
func (p *pass) needsFinalizerAlone(c *cycle) bool {
	calls := len(c.Handlers) > 0 || len(p.resource.Background) > 0 || len(p.resource.Triggered) > 0
	return calls || p.resource.HasConditions || p.object.writes.HasEdits() || p.object.failures > 0
}

package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
)

// update makes the update of a cycle as it stands now. What it decides is decided again
// for each version of the object that it is written to.
func (p *pass) update(c *cycle) write.Update {
	return write.Update{
		Cycle: c.record, Stopping: p.isStopping(), Decision: p.decide(c, c),
		Decide: func(ctx context.Context, body *object.Body) (write.Decision, error) {
			now, err := detector{p.target}.detect(ctx, body)
			if err != nil {
				return write.Decision{}, err
			}
			return p.decide(c, now), nil
		},
	}
}

// decide returns what the end of the cycle means for the finalizer, by what was
// detected on the version that is written to. A deletion releases the object when all
// handlers are done that are for it now; anything else, when no handler needs the
// finalizer anymore.
func (p *pass) decide(c, now *cycle) write.Decision {
	d := write.Decision{DaemonsRunning: now.deleting && p.object.background.areDaemonsRunning()}
	switch {
	case !now.hasFinalizer:
	case c.Reason == cause.Delete:
		d.RemoveFinalizer = c == now || c.hasHandled(now)
	default:
		d.RemoveFinalizer = !now.needsFinalizer
	}
	return d
}

// hasHandled reports whether the handlers of another detection have finished in this
// cycle.
func (c *cycle) hasHandled(now *cycle) bool {
	for _, d := range now.handlers {
		if !c.record.Progress.Has(d.ID) || !c.record.Progress.Load(d.ID).Finished() {
			return false
		}
	}
	return true
}

// record writes the outcomes of the handlers, and returns when to come back.
func (p *pass) record(ctx context.Context, c *cycle) (again bool, wake time.Duration, err error) {
	update := p.update(c)
	p.reportHeldDeletion(c)
	edited := p.object.writes.HasEdits()
	outcome, err := p.session.Write(ctx, update)
	if err != nil {
		return false, 0, err
	}
	p.finishCycle(outcome)
	if outcome.Gone || p.isStopping() {
		return false, 0, nil
	}
	if !outcome.Ended {
		wake, waiting := c.record.Progress.NextDelay()
		return waiting && wake == 0 || !waiting && outcome.ChangedByOthers, wake, nil
	}
	if !p.object.handled {
		return true, 0, nil // resuming handlers are due
	}
	// What has changed since the cycle began, or was changed by the handlers
	// themselves or by others in between, is the next change.
	if edited || outcome.ChangedByOthers || !object.Equal(c.record.First, c.New) {
		return outcome.Changed, 0, nil
	}
	p.noteReconciled()
	return false, 0, nil
}

// finishCycle reports what was written, and notes the end of a cycle.
func (p *pass) finishCycle(written write.Outcome) {
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
	p.object.handled = p.isResumed(c.Reason)
	if !c.Called {
		return
	}
	succeeded, failed := c.Progress.Counts()
	message := fmt.Sprintf("The %s is processed: %d succeeded; %d failed.", c.Reason.Noun(), succeeded, failed)
	p.report.Log.Info(message)
	p.report.Event(p.session.Body(), report.Normal, "CycleFinished", message)
}

// isResumed reports whether everything was called that an object asks of a new process.
// Of a cycle that an earlier process began, that one may have called the resuming
// handlers: what they prepared in its memory is lost. They are called in a cycle of
// their own then, except for those that this process has called.
func (p *pass) isResumed(ended cause.Reason) bool {
	startedByPredecessor := p.object.startedByPredecessor
	p.object.startedByPredecessor = false
	return !startedByPredecessor || ended == cause.Delete
}

// addFinalizer adds the finalizer to the object, and goes on with the rest.
func (p *pass) addFinalizer(ctx context.Context) (again bool, wake time.Duration, err error) {
	outcome, err := p.session.Write(ctx, write.Update{Decision: write.Decision{AddFinalizer: true}})
	return err == nil && !outcome.Gone, 0, err
}

// leaveAlone ends a pass over an object with which there is nothing to do: it removes
// the finalizer that no handler needs, and the records of a cycle that is not there
// anymore.
func (p *pass) leaveAlone(ctx context.Context, c *cycle) (again bool, wake time.Duration, err error) {
	update := write.Update{Decision: c.decideNothingToDo()}
	update.Decide = func(ctx context.Context, body *object.Body) (write.Decision, error) {
		now, err := detector{p.target}.detect(ctx, body)
		if err != nil || !now.nothingToDo() {
			return write.Decision{}, err // the next round handles it
		}
		return now.decideNothingToDo(), nil
	}
	edited := p.object.writes.HasEdits()
	outcome, err := p.session.Write(ctx, update)
	switch {
	case err != nil:
		return false, 0, err
	case outcome.Gone:
		return false, 0, nil
	case (edited || outcome.ChangedByOthers) && outcome.Changed:
		return true, 0, nil
	}
	p.noteReconciled()
	return false, 0, nil
}

// decideNothingToDo returns what can be removed from an object with which there is
// nothing to do.
func (c *cycle) decideNothingToDo() write.Decision {
	d := write.Decision{RemoveFinalizer: c.hasFinalizer && !c.needsFinalizer}
	if c.inScope && c.Reason == cause.NoOp && c.record.Progress.HasLeftovers() {
		d.Leftovers = c.record
	}
	return d
}

// noteReconciled notes that nothing is left to do at this version of the object.
func (p *pass) noteReconciled() { p.object.reconciledVersion = p.session.Body().ResourceVersion() }

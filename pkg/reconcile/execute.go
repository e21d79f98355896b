package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/recording"
)

// errInterrupted stops the handlers when the operator stops, or when the object turns out
// to be gone or changed. Finished outcomes are persisted. The next operator, or the next
// pass over the changed object, calls the other handlers.
var errInterrupted = errors.New("the operator is stopping, or the object was changed")

// errTakeTurns ends the triggered calls of a pass that takes long: the next pass continues with
// the latest version of the object, and with its own changes.
var errTakeTurns = errors.New("the pass has taken long enough")

// prepare adds the selected handlers to the cycle, and makes the runners that call them and
// the triggered handlers.
func (p *pass) prepare(c *cycle) error {
	if !c.NothingToDo() {
		p.announce(c)
		c.include()
		for _, d := range c.Handlers {
			// The time in which a handler could not be called does not count for its timeout. It is known since
			// the time of that attempt. The correction itself may have happened while no operator was running.
			since, wasHeld := p.engine.objects.held.Since(p.key, passMisfit, d.ID)
			if wasHeld && c.Cycle.Progress.Misfit(d.ID) == nil {
				c.Cycle.Progress.Load(d.ID).LeaveOut(since)
			}
		}
		if err := p.awaitIdle(c); err != nil {
			return err
		}
		c.runner = p.newRunner(c, c.Cycle.Progress)
		c.runner.OutOfOrder = func(d *handler.Declaration, why string) {
			p.report.Log.Info("The handler is skipped.", "handler", d.ID, "reason", why)
		}
		c.runner.AfterAttempt = func(_ context.Context, d *handler.Declaration, o call.Outcome) { p.afterAttempt(c, d, o) }
	}
	if c.calls.Calls != nil && len(c.calls.Handlers) > 0 {
		c.calls.runner = p.newTriggeredRunner(c)
	}
	return nil
}

func (p *pass) newRunner(c *cycle, progress *call.Progress) *call.Runner {
	s := p.engine.Settings.Execution
	return &call.Runner{
		Key: p.key, Cause: &c.Cause, Progress: progress, Lifecycle: s.Lifecycle, Backoff: s.Backoff, Slots: p.engine.slots,
		Prepare: func(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext, call.EndSpan) {
			ctx, arguments := p.prepareCall(ctx, d, p.session.Body())
			if d.Ensures != nil {
				arguments.Converger = parent{p, c}
			}
			ctx, span := p.traceAttempt(ctx, d, c)
			return ctx, arguments, span
		},
		Leave: func() { p.leave(c) }, Enter: func() { p.enter(c) },
		Interrupted: p.interrupted,
	}
}

// leave gives back the permit of the pass, and the memory of the essences if they are packed, while the
// code of a handler runs.
func (p *pass) leave(c *cycle) {
	if c.packed != nil {
		c.Old = nil
		c.New = nil
		c.Diff = nil
		c.Cycle.Release()
	}
	p.engine.permits.Release()
}

// enter is the opposite of leave.
func (p *pass) enter(c *cycle) {
	p.engine.permits.Continue(p.key.Resource)
	if c.packed != nil {
		c.packed.Restore(c.Cycle)
		c.Old, c.New, c.Diff = c.Cycle.Difference()
	}
}

// lineUp reports whether a handler can be called now. The others take their places in the queues of limits, or are
// skipped, as their order says.
func (c *cycle) lineUp() bool {
	ofChange := c.runner != nil && c.runner.LineUp(c.Handlers)
	triggered := c.calls.runner != nil && c.calls.runner.LineUp(c.calls.Handlers)
	return ofChange || triggered
}

// startCalls starts the calls of the handlers that can be called now; see nextCall.
func (p *pass) startCalls(c *cycle) {
	p.began = time.Now()
	if c.Cycle != nil && p.engine.slots.Usage().Running >= p.engine.maxUnpacked {
		c.packed = p.engine.records.Pack(c.Cycle, c.CallContext.Body, p.resource.Fields)
	}
	if runner := c.runner; runner != nil {
		if c.packed != nil {
			runner.Essences = essencesOf(c.packed)
		}
		runner.BeforeAttempt = func(context.Context) error {
			if err := p.interrupted(); err != nil {
				return err
			}
			return p.checkpoint(p.writes(), c, runner)
		}
		runner.Start(p.term.calls, c.Handlers)
	}
	if runner := c.calls.runner; runner != nil {
		runner.BeforeAttempt = func(context.Context) error {
			if err := p.interrupted(); err != nil {
				return err
			}
			if runner.Attempts > 0 && time.Since(p.began) >= p.engine.Settings.Execution.CheckpointInterval {
				return errTakeTurns
			}
			return nil
		}
		runner.Start(p.term.calls, c.calls.Handlers)
	}
}

// interrupted returns an error if no handler of the object must be called anymore in this term.
func (p *pass) interrupted() error {
	if p.term.isStopping() || p.term.tenure.isOver() {
		return errInterrupted
	}
	return nil
}

// runners returns what calls the handlers of the plan.
func (c *cycle) runners() []*call.Runner {
	return slices.DeleteFunc([]*call.Runner{c.runner, c.calls.runner}, func(r *call.Runner) bool { return r == nil })
}

// nextCall ends a call, unless it is nil, and returns the next one, or nil at the end.
func (c *cycle) nextCall(last *call.Call) (*call.Call, error) {
	if last != nil {
		if err := last.End(); err != nil {
			return nil, err
		}
	}
	for _, r := range c.runners() {
		if next, err := r.Next(); next != nil || err != nil {
			return next, err
		}
	}
	return nil, nil
}

// returnSlots returns the slots of calls that have not ended.
func (c *cycle) returnSlots() {
	for _, r := range c.runners() {
		r.ReturnSlots()
	}
}

// endCalls leaves the outcomes of the calls in the progress of the cycle, and their edits with
// the writer. The error is that of nextCall.
func (p *pass) endCalls(c *cycle, err error) error {
	c.returnSlots()
	if c.runner != nil {
		c.Cycle.Called = c.Cycle.Called || c.runner.Attempts > 0
		c.runner.Order(c.Handlers)
	}
	for _, r := range c.runners() {
		p.object.writes.Add(r.Edits...)
	}
	if errors.Is(err, errInterrupted) || errors.Is(err, handler.ErrCanceled) {
		if c.runner != nil {
			c.Cycle.Progress.WithdrawUnstarted()
		}
		return nil // finished outcomes must be persisted
	}
	if err != nil && !errors.Is(err, errTakeTurns) {
		p.keepOutcomes(c)
		return err
	}
	return nil
}

// keepOutcomes leaves the outcomes of a pass that has failed to the next one, together with their
// edits. A handler can have written to the object in the middle of its call, after others have ended.
func (p *pass) keepOutcomes(c *cycle) {
	attempts := 0
	for _, r := range c.runners() {
		attempts += r.Attempts
	}
	switch {
	case attempts == 0: // nothing has ended
	case c.NothingToDo():
		p.object.writes.Keep(p.updateAlone(c))
	default:
		c.Cycle.Progress.WithdrawUnstarted()
		p.object.writes.Keep(p.update(c))
	}
}

// checkpoint persists the outcomes so far if the pass takes long.
func (p *pass) checkpoint(ctx context.Context, c *cycle, runner *call.Runner) error {
	if runner.Attempts == 0 || time.Since(p.began) < p.engine.Settings.Execution.CheckpointInterval || len(c.Cycle.Progress.Dirty()) == 0 {
		return nil
	}
	p.object.writes.Add(runner.Edits...)
	runner.Edits = nil
	outcome, err := p.session.Write(ctx, p.update(c))
	if err != nil {
		return err
	}
	p.finishCycle(outcome)
	p.began = time.Now()
	if outcome.Gone || outcome.ChangedByOthers || p.term.isStopping() { // the write takes time
		return errInterrupted
	}
	return nil
}

// afterAttempt reports and counts the outcome of an attempt.
func (p *pass) afterAttempt(c *cycle, d *handler.Declaration, o call.Outcome) {
	p.engine.measure(p.resource, d, o)
	if recorder := p.engine.Recorder; recorder != nil {
		recorder.Outcome(p.resource.Resource.Resource, p.session.Body(), d.ID, recording.Result{Final: o.Final, Err: o.Err})
	}
	if o.Succeeded() && o.Ignored == nil && o.HasEdit {
		c.Cycle.Unreported = append(c.Cycle.Unreported, d.ID) // reported when the edit is written
	} else {
		p.report.Outcome(p.session.Body(), d.ID, o)
	}
	if p.object.startedByPredecessor && o.Called && o.Final {
		p.object.markFinished(d.ID)
	}
}

// essencesOf returns a function that returns the essences of a cycle at any time, so that
// handlers may keep their arguments. It keeps nothing else of the pass.
func essencesOf(packed *record.Packed) func() *handler.Cause {
	return func() *handler.Cause {
		var c handler.Cause
		var r record.Cycle
		packed.Restore(&r)
		c.Old, c.New, c.Diff = r.Difference()
		return &c
	}
}

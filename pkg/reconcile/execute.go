package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/capacity"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/recording"
)

// errInterrupted stops the handlers when the operator stops, or when the object turns out
// to be gone or changed. Finished outcomes are persisted. The next operator, or the next
// pass over the changed object, calls the other handlers.
var errInterrupted = errors.New("the operator is stopping, or the object was changed")

// prepare adds the selected handlers to the cycle, and makes the runners that call them and
// the triggered handlers.
func (p *pass) prepare(c *cycle) {
	if !c.NothingToDo() {
		p.announce(c)
		c.include()
		p.leaveOutMisfits(c)
		c.runner = p.newRunner(c, c.Cycle.Progress)
		c.runner.AfterAttempt = func(_ context.Context, d *handler.Declaration, o execution.Outcome) { p.afterAttempt(c, d, o) }
	}
	p.prepareTriggered(c)
}

func (p *pass) newRunner(c *cycle, progress *execution.Progress) *execution.Runner {
	s := p.engine.Settings.Execution
	return &execution.Runner{
		Cause: &c.Cause, Progress: progress, Lifecycle: s.Lifecycle, Backoff: s.Backoff, Gate: gate{p, c},
		Prepare: func(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext) {
			callCtx, call := p.prepareCall(ctx, d, p.session.Body())
			call.Converger = p.convergerOf(c, d)
			return callCtx, call
		},
	}
}

// hasDue reports whether a handler can be called now.
func (c *cycle) hasDue() bool {
	due := c.runner != nil && c.runner.HasDue(c.Handlers)
	return c.calls.hasDue() || due // both take their places in the queues of limits
}

// startCalls starts the calls of the handlers that are due; see nextCall.
func (p *pass) startCalls(c *cycle) {
	p.began = time.Now()
	if c.Cycle != nil && p.engine.slots.State().Running >= p.engine.fewCalls {
		c.packed = p.engine.records.Pack(c.Cycle, c.CallContext.Body, p.resource.Fields)
	}
	if runner := c.runner; runner != nil {
		if c.packed != nil {
			runner.Essences = essencesOf(c.packed)
		}
		runner.BeforeAttempt = func(context.Context) error {
			if p.workers.isStopping() {
				return errInterrupted
			}
			return p.checkpoint(p.workers.writes, c, runner)
		}
		runner.Start(p.workers.calls, c.Handlers)
	}
	p.startTriggered(c)
}

// nextCall ends a call, unless it is nil, and returns the next one, or nil at the end.
func (c *cycle) nextCall(last *execution.Call) (*execution.Call, error) {
	if last != nil {
		if err := last.End(); err != nil {
			return nil, err
		}
	}
	for _, r := range []*execution.Runner{c.runner, c.calls.runner} {
		if r == nil {
			continue
		}
		if call, err := r.Next(); call != nil || err != nil {
			return call, err
		}
	}
	return nil, nil
}

// endCalls leaves the outcomes of the calls in the progress of the cycle, and their edits with
// the writer. The error is that of nextCall.
func (p *pass) endCalls(c *cycle, err error) error {
	if c.runner != nil {
		c.Cycle.Called = c.Cycle.Called || c.runner.Attempts > 0
		p.object.writes.Add(c.runner.Edits...)
	}
	if c.calls.runner != nil {
		p.object.writes.Add(c.calls.runner.Edits...)
	}
	if errors.Is(err, errInterrupted) || errors.Is(err, execution.ErrCanceled) {
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
	for _, r := range []*execution.Runner{c.runner, c.calls.runner} {
		if r != nil {
			attempts += r.Attempts
		}
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
func (p *pass) checkpoint(ctx context.Context, c *cycle, runner *execution.Runner) error {
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
	if outcome.Gone || outcome.ChangedByOthers || p.workers.isStopping() { // the write takes time
		return errInterrupted
	}
	return nil
}

// afterAttempt reports and counts the outcome of an attempt.
func (p *pass) afterAttempt(c *cycle, d *handler.Declaration, o execution.Outcome) {
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
		p.object.noteFinished(d.ID)
	}
}

// isStopping reports whether the operator was asked to stop or to pause.
func (w *workers) isStopping() bool {
	select {
	case <-w.stopping:
		return true
	default:
		return false
	}
}

// releaseEssences frees the memory of the essences while the code of a handler runs, if they are
// packed.
func (c *cycle) releaseEssences() {
	if c.packed == nil {
		return
	}
	c.Old = nil
	c.New = nil
	c.Diff = nil
	c.Cycle.Release()
}

func (c *cycle) restoreEssences() {
	if c.packed == nil {
		return
	}
	c.packed.Restore(c.Cycle)
	c.Old, c.New, c.Diff = c.Cycle.Difference()
}

// essencesOf returns a function that returns the essences of a cycle at any time, so that
// handlers may keep their arguments.
func essencesOf(packed *record.Packed) func() *handler.Cause {
	return func() *handler.Cause {
		var c handler.Cause
		var r record.Cycle
		packed.Restore(&r)
		c.Old, c.New, c.Diff = r.Difference()
		return &c
	}
}

// gate limits the calls of a pass. While the code of a handler runs, it gives back the permit
// of the pass, and the memory of the essences.
type gate struct {
	pass  *pass
	cycle *cycle
}

var _ execution.Gate = gate{}

func (g gate) call(d *handler.Declaration) capacity.Call {
	c := capacity.Call{Key: g.pass.key, ID: d.ID, Limit: d.Limit, Nested: d.Kind == handler.Subhandler}
	if d.Limit > 0 {
		c.Pool = handler.LimitGroup(d)
	}
	return c
}

// isWithin reports whether the call is a part of another one: it has the slot of its parent.
func isWithin(c capacity.Call) bool { return c.Nested && c.Limit == 0 }

func (g gate) CanCall(d *handler.Declaration) bool {
	c := g.call(d)
	return isWithin(c) || g.pass.engine.slots.CanTake(c)
}

func (g gate) Begin(d *handler.Declaration) (end func(), ok bool) {
	c := g.call(d)
	if isWithin(c) {
		return func() {}, true
	}
	slot := g.pass.engine.slots.Take(c)
	if slot == nil {
		return nil, false
	}
	g.pass.slots = append(g.pass.slots, slot)
	return func() { g.end(slot) }, true
}

// end returns a slot.
func (g gate) end(slot *capacity.Running) {
	g.pass.slots = slices.DeleteFunc(g.pass.slots, func(other *capacity.Running) bool { return other == slot })
	g.pass.engine.slots.Return(slot)
}

func (g gate) Waits(id string) bool { return g.pass.engine.slots.Waits(g.pass.key, id) }

func (g gate) CanGo(id string) bool { return g.pass.engine.slots.HasReserved(g.pass.key, id) }

func (g gate) Leave() {
	g.cycle.releaseEssences()
	g.pass.engine.permits.Release()
}

func (g gate) Enter() {
	g.pass.engine.permits.Continue(g.pass.key.Resource)
	g.cycle.restoreEssences()
}

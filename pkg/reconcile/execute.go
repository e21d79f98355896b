package reconcile

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// errInterrupted stops the handlers when the operator stops, or when the object turns out
// to be gone or changed. Finished outcomes are persisted. The next operator, or the next
// pass over the changed object, calls the other handlers.
var errInterrupted = errors.New("the operator is stopping, or the object was changed")

// execute calls the handlers that are due. It leaves their outcomes in the cycle's
// progress, and their edits with the writer.
func (p *pass) execute(ctx context.Context, c *cycle) error {
	p.announce(c)
	c.include()
	p.began = time.Now()
	s := p.engine.Settings.Execution
	runner := &execution.Runner{
		Cause: &c.Cause, Progress: c.record.Progress, Lifecycle: s.Lifecycle, Backoff: s.Backoff,
		Prepare: func(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext) {
			return p.prepareCall(ctx, d, p.session.Body())
		},
		AfterAttempt: func(_ context.Context, d *handler.Declaration, o execution.Outcome) { p.afterAttempt(c, d, o) },
	}
	runner.BeforeAttempt = func(ctx context.Context) error {
		if p.isStopping() {
			return errInterrupted
		}
		return p.checkpoint(ctx, c, runner)
	}
	err := runner.Run(ctx, c.handlers)
	c.record.Called = c.record.Called || runner.Attempts > 0
	p.object.writes.Add(runner.Edits...)
	if errors.Is(err, errInterrupted) || errors.Is(err, execution.ErrCanceled) {
		return nil // finished outcomes must be persisted
	}
	return err
}

// checkpoint persists the outcomes so far if the pass takes long.
func (p *pass) checkpoint(ctx context.Context, c *cycle, runner *execution.Runner) error {
	if runner.Attempts == 0 || time.Since(p.began) < p.engine.Settings.Execution.CheckpointInterval || len(c.record.Progress.Dirty()) == 0 {
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
	if outcome.Gone || outcome.ChangedByOthers {
		return errInterrupted
	}
	return nil
}

// afterAttempt reports and counts the outcome of an attempt.
func (p *pass) afterAttempt(c *cycle, d *handler.Declaration, o execution.Outcome) {
	p.engine.measure(p.resource, d, o)
	if o.Succeeded() && o.Ignored == nil && o.HasEdit {
		c.record.Unreported = append(c.record.Unreported, d.ID) // reported when the edit is written
	} else {
		p.report.Outcome(p.session.Body(), d.ID, o)
	}
	if p.object.startedByPredecessor && o.Called && o.Final {
		p.object.noteFinished(d.ID)
	}
}

// isStopping reports whether the operator was asked to stop or to pause.
func (p *pass) isStopping() bool {
	select {
	case <-p.stopping:
		return true
	default:
		return false
	}
}

package reconcile

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// errStopping ends the handlers' run when the operator stops: what is done is
// persisted, what is not has to wait for the next operator.
var errStopping = errors.New("the operator is stopping")

// errChanged ends the handlers' run when the object turns out to be another one
// than that which they are called for: the others are called for the new one.
var errChanged = errors.New("the object was changed")

// execute calls the handlers that are due. Their outcomes are in the cycle's
// progress, and what they want to be written is in the memory.
func (p *pass) execute(ctx context.Context, c *cycle) error {
	p.announce(c)
	c.enter()
	p.began = time.Now()
	runner := &execution.Runner{
		Cause: &c.Cause, Progress: c.progress,
		Lifecycle: p.Settings.Execution.Lifecycle, Backoff: p.Settings.Execution.Backoff,
		Prepare: p.prepare,
		AfterAttempt: func(_ context.Context, d *handler.Declaration, o execution.Outcome) {
			p.measure(p.served, d, o)
			p.report(c, d, o)
			if p.memory.inherited && o.Called && o.Final {
				p.memory.finished(d.ID)
			}
		},
	}
	runner.BeforeAttempt = func(ctx context.Context) error {
		select {
		case <-p.stopping:
			return errStopping
		default:
			return p.checkpoint(ctx, c, runner)
		}
	}
	err := runner.Run(ctx, c.handlers)
	c.called = c.called || runner.Attempts > 0
	p.memory.unsent = append(p.memory.unsent, runner.Edits...)
	if errors.Is(err, errStopping) || errors.Is(err, errChanged) || errors.Is(err, execution.ErrCancelled) {
		return nil // what is done is to be persisted
	}
	return err
}

// checkpoint persists what was done until now when the pass takes long.
func (p *pass) checkpoint(ctx context.Context, c *cycle, runner *execution.Runner) error {
	if runner.Attempts == 0 || time.Since(p.began) < p.Settings.Execution.CheckpointInterval || len(c.progress.Dirty()) == 0 {
		return nil
	}
	p.memory.unsent = append(p.memory.unsent, runner.Edits...)
	runner.Edits = nil
	if err := p.commit(ctx, p.intend(c)); err != nil {
		return err
	}
	p.began = time.Now()
	if p.foreign {
		return errChanged
	}
	return nil
}

// prepare makes the context of one call of a handler.
func (p *pass) prepare(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext) {
	subject, body := p.subject(), p.body // the one that the handler is called with
	about := About{Body: func() *object.Body { return body }, Resource: p.Resource}
	about.Logger = p.told.Logger(p.log, about.Body, "handler", d.ID)
	subject.Logger = about.Logger
	return p.Context(ctx, about), subject
}

func (p *pass) subject() handler.CallContext {
	return handler.CallContext{Body: p.body, Resource: &p.served.Resource, Logger: p.log, Client: p.Client, Memo: p.memos}
}

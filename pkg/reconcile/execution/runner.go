package execution

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/registry"
)

// Edit is what one handler wants to be written to the object.
type Edit struct {
	ID     string
	Result any          // under status.<id>, as decoded JSON; nil: nothing
	Patch  *patch.Patch // never nil
	// StatusWritten: the part of it that goes to the status is written already.
	StatusWritten bool
	// BestEffort: no handler wants it, and none fails if it is refused.
	BestEffort bool
}

// Runner calls the handlers of one object in one pass.
type Runner struct {
	Cause     *handler.Cause
	Progress  *Progress
	Lifecycle handler.Lifecycle
	Backoff   time.Duration // where a handler has none of its own

	// BeforeAttempt is called before every attempt, with the context of the run, and
	// with what the handlers have contributed until then still in Edits.
	// An error ends the run.
	BeforeAttempt func(ctx context.Context) error
	// Prepare prepares the context and the subject of one call.
	Prepare func(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext)
	// AfterAttempt is told what has come of every attempt.
	AfterAttempt func(ctx context.Context, d *handler.Declaration, o Outcome)

	// Edits are what the handlers want to be written, in their order.
	Edits []Edit
	// Attempts is how many there were.
	Attempts int

	// ctx is of the run. Handlers may call their sub-handlers with another one,
	// which says nothing of the run when it is cancelled.
	ctx context.Context
}

// ErrCancelled ends a run whose context was cancelled while a handler was
// running. That attempt does not count: it will be made again.
var ErrCancelled = errors.New("the handler was cancelled because the operator is stopping")

// Run calls those of the handlers that are due, in the order of the lifecycle.
// The handlers have entered the progress before.
func (r *Runner) Run(ctx context.Context, handlers registry.Handlers) error {
	r.ctx = ctx
	for _, due := range r.selectDue(handlers) {
		if err := r.BeforeAttempt(r.ctx); err != nil {
			return err
		}
		if err := r.runHandler(ctx, due.Declaration, nil); err != nil {
			return err
		}
	}
	return nil
}

// chosen are those of the due handlers that the lifecycle wants to be called now.
func (r *Runner) selectDue(handlers registry.Handlers) []handler.Due {
	due := r.due(handlers)
	if len(due) == 0 {
		return nil // there is nothing to choose from
	}
	return r.Lifecycle(due)
}

func (r *Runner) due(handlers registry.Handlers) []handler.Due {
	var due []handler.Due
	for _, d := range handlers {
		state := r.Progress.Load(d.ID)
		if !state.Finished() && state.RemainingDelay(now()) == 0 {
			due = append(due, handler.Due{Declaration: d, Retries: state.Retries})
		}
	}
	return due
}

// attempt calls one handler with its sub-handlers. The error is not the
// handler's but that of the run.
func (r *Runner) runHandler(ctx context.Context, d *handler.Declaration, ancestors []*subhandlers) error {
	state := r.Progress.Load(d.ID)
	callCtx, subject := r.Prepare(ctx, d)
	subject.Patch = &patch.Patch{}
	subs := &subhandlers{runner: r, parent: d, ancestors: ancestors}
	attempt := handler.Attempt{Retry: state.Retries, Started: state.Started, Now: now()}
	change := handler.NewChange(subject, d.Param, attempt, d.Transition(r.Cause), subs)

	outcome := limitsOf(d, r.Backoff).call(callCtx, attempt, func(ctx context.Context) (any, error) {
		return subs.callParent(ctx, change)
	})
	switch {
	case subs.interrupted != nil:
		return subs.interrupted
	case r.ctx.Err() != nil && outcome.Err != nil:
		return ErrCancelled
	}
	r.Attempts++
	state.apply(outcome)
	if state.Finished() {
		r.Progress.abandon(state.Subrefs)
	}
	if outcome.HasEdit = outcome.Result != nil || !subject.Patch.Empty(); outcome.HasEdit {
		r.Edits = append(r.Edits, Edit{ID: d.ID, Result: outcome.Result, Patch: subject.Patch})
	}
	r.AfterAttempt(callCtx, d, outcome)
	return nil
}

// NormalizeResult turns what a handler has set as its result into what the status can
// keep. The error is permanent: the handler would do the same again.
func NormalizeResult(value any) (any, error) {
	result, err := object.Normalize(value)
	if err != nil {
		return nil, handler.Permanent(fmt.Errorf("the result cannot be stored in the status: %w", err))
	}
	return result, nil
}

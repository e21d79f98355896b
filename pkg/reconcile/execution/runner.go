package execution

import (
	"context"
	"errors"
	"fmt"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/lifecycles"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/registry"
)

// Edit is what one attempt of a handler wants to write to the object.
type Edit struct {
	ID     string       // of the handler
	Result any          // stored under status.<id>, as decoded JSON; nil if there is none
	Patch  *patch.Patch // never nil
	// StatusWritten is set once the part that goes to the status is written.
	StatusWritten bool
	// BestEffort marks an edit that belongs to no handler: none fails if it is rejected.
	BestEffort bool
	// Revise returns the outcome of the attempt if a transformation of the patch fails: the
	// same as if the handler had returned the error. Nil: the handler is not called again.
	Revise func(err error) Outcome
	// Done is called exactly once: when the edit is written, rejected or overtaken, or
	// when the object is gone. Nil: its author does not wait for that.
	Done func()
}

// Finish calls Done.
func (e Edit) Finish() {
	if e.Done != nil {
		e.Done()
	}
}

// Runner calls the handlers of one object in one pass.
type Runner struct {
	Cause *handler.Cause
	// Essences returns the essences of the cause at any time, also when the gate has taken
	// them from the Cause. Nil: the gate takes nothing.
	Essences  func() *handler.Cause
	Progress  *Progress
	Lifecycle lifecycles.Lifecycle
	Backoff   backoff.Backoff // of handlers that declare none

	// BeforeAttempt is called before every attempt with the context of the run, while
	// Edits holds the edits of all earlier attempts. An error ends the run.
	BeforeAttempt func(ctx context.Context) error
	// Prepare returns the context of one call, and the CallContext for its arguments.
	Prepare func(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext)
	// AfterAttempt is called with the outcome of every attempt.
	AfterAttempt func(ctx context.Context, d *handler.Declaration, o Outcome)

	// Gate limits the calls. Nil does not.
	Gate Gate

	// Edits are the edits of the handlers, in the order of the calls.
	Edits []Edit
	// Attempts is the number of attempts.
	Attempts int

	// ctx is the context of the run. Handlers may execute their sub-handlers with
	// another one; its cancellation does not end the run.
	ctx   context.Context
	queue []lifecycles.Due // the rest of the run
}

// ErrCanceled ends a run whose context is canceled while a handler is running.
// That attempt does not count: it is made again later.
var ErrCanceled = errors.New("the handler was canceled because the operator is stopping")

// Interruption is returned by the code around a handler, to end the run instead of the attempt.
type Interruption struct{ Err error }

// Error returns the text of the reason.
func (i *Interruption) Error() string { return i.Err.Error() }

// Unwrap returns the reason.
func (i *Interruption) Unwrap() error { return i.Err }

// Run calls the handlers that are due, in the order of the lifecycle. All of them
// must be included in the progress.
func (r *Runner) Run(ctx context.Context, handlers registry.Handlers) error {
	r.Start(ctx, handlers)
	for {
		call, err := r.Next()
		if call == nil {
			return err
		}
		call.Make()
		if err := call.End(); err != nil {
			return err
		}
	}
}

// Start begins a run. Thousands of handlers can wait, and a run within their stacks takes as
// much memory as all the rest, so the engine makes the calls of Next itself; see Run.
func (r *Runner) Start(ctx context.Context, handlers registry.Handlers) {
	r.ctx, r.queue = ctx, r.selectDue(handlers)
}

// Next returns the next call of the run, or nil at its end. The error is not a handler's: it
// ends the run.
func (r *Runner) Next() (*Call, error) {
	for len(r.queue) > 0 {
		due := r.queue[0]
		r.queue = r.queue[1:]
		if err := r.BeforeAttempt(r.ctx); err != nil {
			return nil, err
		}
		if call := r.begin(r.ctx, due.Declaration, nil); call != nil {
			return call, nil
		}
	}
	return nil, nil
}

// HasDue reports whether a handler can be called now.
func (r *Runner) HasDue(handlers registry.Handlers) bool { return len(r.due(handlers)) > 0 }

// selectDue returns the due handlers that the lifecycle wants to be called now.
func (r *Runner) selectDue(handlers registry.Handlers) []lifecycles.Due {
	due := r.due(handlers)
	if len(due) == 0 {
		return nil
	}
	return r.Lifecycle(due)
}

// due returns the unfinished handlers that need not wait.
func (r *Runner) due(handlers registry.Handlers) []lifecycles.Due {
	var due []lifecycles.Due
	for _, d := range handlers {
		if r.isDue(d) {
			due = append(due, lifecycles.Due{Declaration: d, Retries: r.Progress.Load(d.ID).Retries, Cause: r.Cause})
		}
	}
	return due
}

// Call is one attempt of a handler. It holds what is needed while the handler runs, so that
// the stack stays shallow.
type Call struct {
	runner  *Runner
	state   *State
	isFirst bool // no attempt was made before
	ctx     context.Context
	change  *handler.Change
	patch   *patch.Patch
	attempt handler.Attempt
	limits  limits
	subs    subhandlers

	limitErr error  // the exceeded limit; nil if the handler can be called
	cancel   func() // ends the handler's timeout
	release  func() // returns what the gate has given

	result any
	err    error
}

// begin prepares an attempt. It returns nil if the handler must wait.
func (r *Runner) begin(ctx context.Context, d *handler.Declaration, ancestors []*subhandlers) *Call {
	state := r.Progress.Load(d.ID)
	release, ok := r.gate().Begin(d)
	if !ok {
		r.postpone(state)
		return nil
	}
	a := &Call{runner: r, state: state, isFirst: state.start(), patch: &patch.Patch{}, limits: limitsOf(d, r.Backoff), release: release}
	a.subs = subhandlers{runner: r, parent: d, ancestors: ancestors}
	callCtx, call := r.Prepare(ctx, d)
	call.Patch = a.patch
	a.attempt = handler.Attempt{Retry: state.Retries, Started: state.Started, Now: now()}
	a.change = handler.NewChangeOf(d, call, a.attempt, &a.subs, r.Cause.Reason, r.essences())
	a.ctx, a.cancel, a.limitErr = a.limits.withTimeout(callCtx, a.attempt)
	r.gate().Leave()
	return a
}

// essences returns a function that returns the essences of the cause.
func (r *Runner) essences() func() *handler.Cause {
	if r.Essences == nil {
		return func() *handler.Cause { return r.Cause }
	}
	return r.Essences
}

// Make calls the handler, unless one of its limits is exceeded. A handler that ends the
// goroutine has failed: call End in another one then.
func (a *Call) Make() {
	switch {
	case a.limitErr != nil:
	case len(a.subs.ancestors) > 0: // the goroutine belongs to the call of the parent
		a.err = handler.WithRecover(func() error { return a.subs.parent.Call(a.ctx, a.change) })
	default:
		a.err = handler.ErrExited // unless the handler returns
		a.err = a.subs.parent.Call(a.ctx, a.change)
	}
}

// outcome returns what follows from the call.
func (a *Call) outcome() Outcome {
	if a.limitErr != nil {
		return Outcome{Final: true, Err: a.limitErr}
	}
	defer a.cancel()
	if a.err == nil {
		a.result, a.err = a.subs.afterParent(a.ctx, a.change)
	}
	return a.limits.evaluate(a.ctx, a.attempt, a.result, a.err)
}

// End records the outcome of the attempt. The error is not the handler's: it ends the run.
func (a *Call) End() error {
	a.runner.gate().Enter()
	defer a.release()
	r := a.runner
	d := a.subs.parent
	outcome := a.outcome()
	var interruption *Interruption
	switch {
	case a.subs.interrupted != nil:
		return a.subs.interrupted
	case errors.As(outcome.Err, &interruption):
		a.state.unstarted = a.isFirst
		return interruption.Err
	case r.ctx.Err() != nil && outcome.Err != nil:
		a.state.unstarted = a.isFirst
		return ErrCanceled
	}
	if misfit := handler.AsMisfit(outcome.Err); misfit != nil {
		r.Progress.SetAside(d.ID, misfit)
		return nil
	}
	r.Attempts++
	a.state.apply(outcome)
	a.state.waiting = !a.state.Finished() && r.isBlocked(a.state)
	if a.state.Finished() {
		r.Progress.abandon(a.state.Subrefs)
	}
	outcome.HasEdit = outcome.Result != nil || !a.patch.Empty()
	if outcome.HasEdit {
		r.Edits = append(r.Edits, Edit{
			ID: d.ID, Result: outcome.Result, Patch: a.patch,
			Revise: func(err error) Outcome { return a.limits.evaluate(a.ctx, a.attempt, nil, err) },
		})
	}
	r.AfterAttempt(a.ctx, d, outcome)
	return nil
}

// NormalizeResult converts the result of a handler into what a status can hold. The
// error is permanent: the handler would return the same result again. A panic of the code of
// users that encodes the result is an error as any other of the handler.
func NormalizeResult(value any) (result any, err error) {
	if value == nil {
		return nil, nil //nolint:nilnil // there is no result
	}
	failure := handler.WithRecover(func() error {
		result, err = object.Normalize(value)
		return nil
	})
	switch {
	case failure != nil:
		return nil, fmt.Errorf("the result cannot be encoded: %w", failure)
	case err != nil:
		return nil, handler.Permanent(fmt.Errorf("the result cannot be stored in the status: %w", err))
	default:
		return result, nil
	}
}

package call

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// Edit contains what one attempt of a handler wants to write to the object.
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
	// Failed is called if the edit cannot be written, so that its handler has failed. It can be nil.
	Failed func(err error)
	// Refused is called before Done if the edit is not written, and says why. Its author decides what follows, so that
	// the refusal is not reported, and the edit is not kept for a missing permission. Nil: the author does not decide.
	Refused func(why error)
	// Done is called exactly once: when the edit is written, rejected or overtaken, or
	// when the object is gone. Nil: its author does not wait for that.
	Done func()
}

// Refuse calls Refused and Done.
func (e Edit) Refuse(why error) {
	if e.Refused != nil {
		e.Refused(why)
	}
	e.Finish()
}

// Finish calls Done.
func (e Edit) Finish() {
	if e.Done != nil {
		e.Done()
	}
}

// Runner calls the handlers of one object in one pass. A handler without a slot is not due, and the
// slots request another pass when it gets one.
type Runner struct {
	Key   object.Key // of the object
	Cause *handler.Cause
	// Essences returns the essences of the cause at any time, also while Leave has taken them from
	// the Cause. Nil: Leave does not take them.
	Essences  func() *handler.Cause
	Progress  *Progress
	Lifecycle lifecycles.Lifecycle
	Backoff   backoff.Backoff // of handlers that declare none
	Slots     *Slots

	// BeforeAttempt is called before every attempt with the context of the run, while
	// Edits holds the edits of all earlier attempts. An error ends the run.
	BeforeAttempt func(ctx context.Context) error
	// Interrupted is asked at the last moment before the code of a handler runs: the goroutine can have waited for a
	// processor, or for a write of BeforeAttempt. An error ends the run, and the attempt does not count.
	Interrupted func() error
	// Prepare returns the context of one call, the CallContext for its arguments, and the end of the span
	// that the context has; nil without a span.
	Prepare func(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext, EndSpan)
	// Leave is called before the code of a handler runs, and Enter after it. In between, the pass
	// does not hold what others may need.
	Leave, Enter func()
	// AfterAttempt is called with the outcome of every attempt.
	AfterAttempt func(ctx context.Context, d *handler.Declaration, o Outcome)

	// OutOfOrder is called for a handler that is skipped because its turn never comes.
	OutOfOrder func(d *handler.Declaration, why string)

	// Edits are the edits of the handlers, in the order of the calls.
	Edits []Edit
	// Attempts is the number of attempts.
	Attempts int

	// ctx is the context of the run. Handlers may execute their sub-handlers with
	// another one; its cancellation does not end the run.
	ctx   context.Context
	queue registry.Handlers // the rest of the run
	slots []*Running        // of the running handlers: more than one with sub-handlers
}

// EndSpan ends the span of an attempt with its outcome. The attempt counts unless it is made again later as if it had
// not been made.
type EndSpan func(o Outcome, counts bool)

// End calls the function if there is a span.
func (e EndSpan) End(o Outcome, counts bool) {
	if e != nil {
		e(o, counts)
	}
}

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
	r.ctx = ctx
	r.queue = r.selectDue(handlers)
}

// Next returns the next call of the run, or nil at its end. The error is not a handler's: it
// ends the run.
func (r *Runner) Next() (*Call, error) {
	for len(r.queue) > 0 {
		d := r.queue[0]
		r.queue = r.queue[1:]
		if err := r.BeforeAttempt(r.ctx); err != nil {
			return nil, err
		}
		call := r.begin(r.ctx, d, nil)
		if call != nil {
			return call, nil
		}
	}
	return nil, nil
}

// ReturnSlots returns the slots of calls that have not ended, because the code around a handler has
// panicked, or has ended its goroutine.
func (r *Runner) ReturnSlots() {
	for _, slot := range slices.Clone(r.slots) {
		r.returnSlot(slot)
	}
}

func (r *Runner) returnSlot(slot *Running) {
	i := slices.Index(r.slots, slot)
	if i >= 0 {
		r.slots = slices.Delete(r.slots, i, i+1)
		r.Slots.Return(slot)
	}
}

// LineUp reports whether a handler can be called now. It skips the handlers whose turn never comes, and the
// others take their places in the queues of limits.
func (r *Runner) LineUp(handlers registry.Handlers) bool {
	r.Order(handlers)
	return slices.ContainsFunc(handlers, r.lineUp)
}

// selectDue returns the due handlers that the lifecycle wants to be called now. It lines them up.
func (r *Runner) selectDue(handlers registry.Handlers) registry.Handlers {
	r.Order(handlers)
	handlers = handlers.Where(r.lineUp)
	if len(handlers) == 0 {
		return nil
	}
	due := make([]lifecycles.Due, len(handlers))
	for i, d := range handlers {
		due[i] = lifecycles.Due{
			ID: d.ID, Param: d.Param, Retries: r.Progress.Load(d.ID).Retries, Reason: r.Cause.Reason, Object: r.Cause.CallContext.Body,
		}
	}
	var selected registry.Handlers
	for _, chosen := range r.Lifecycle(due) {
		i := slices.IndexFunc(handlers, func(d *handler.Declaration) bool { return d.ID == chosen.ID })
		if i >= 0 {
			selected = append(selected, handlers[i])
		}
	}
	return selected
}

// lineUp reports whether a handler can be called now. Otherwise, if it waits for a slot, it takes its place in the
// queue of the limit, or keeps it. A handler that waits only for the slots of its sub-handlers is called when
// one of them has got one, also before its time.
func (r *Runner) lineUp(d *handler.Declaration) bool {
	state := r.Progress.Load(d.ID)
	if state.Finished() || state.misfit != nil || state.outOfTurn {
		return false
	}
	hasSlotBelow := slices.ContainsFunc(state.Subrefs, func(id string) bool { return r.Slots.HasReserved(r.Key, id) })
	if !hasSlotBelow && state.RemainingDelay(now()) > 0 {
		return false
	}
	isBlocked := !hasSlotBelow && r.isBlocked(state)
	claim := r.claim(d)
	needsSlot := !claim.isWithinAnother()
	if isBlocked || needsSlot && !r.Slots.LineUp(claim) {
		r.postpone(state)
		return false
	}
	state.waiting = false
	return true
}

// claim returns what a call of the handler needs.
func (r *Runner) claim(d *handler.Declaration) Claim {
	c := Claim{Key: r.Key, ID: d.ID, Limit: d.Limit, Nested: d.Kind == handler.Subhandler}
	if d.Limit > 0 {
		c.Pool = handler.LimitGroup(d)
	}
	return c
}

// isBlocked reports whether a sub-handler waits for its slot, and no other is due.
func (r *Runner) isBlocked(parent *State) (blocked bool) {
	for _, id := range parent.Subrefs {
		state := r.Progress.Load(id)
		switch {
		case state.Finished() || state.RemainingDelay(now()) > 0:
		case r.Slots.Waits(r.Key, id):
			blocked = true
		default:
			return false
		}
	}
	return blocked
}

// postpone leaves a handler to another pass, which the slots request. A handler that was
// not called yet has no record, so its time does not run.
func (r *Runner) postpone(state *State) {
	state.waiting = true
	if state.unstarted {
		state.dirty = false
	}
}

// Call is one attempt of a handler. It holds what is needed while the handler runs, so that
// the stack stays shallow.
type Call struct {
	runner  *Runner
	state   *State
	isFirst bool // no attempt was made before
	ctx     context.Context
	change  *handler.Call
	patch   *patch.Patch
	attempt Attempt
	subs    subhandlers
	slot    *Running // nil if the call is within another one, and has its slot
	span    EndSpan

	result any
	err    error
}

// begin prepares an attempt. It returns nil if the handler must wait.
func (r *Runner) begin(ctx context.Context, d *handler.Declaration, ancestors []*subhandlers) *Call {
	state := r.Progress.Load(d.ID)
	c := &Call{runner: r, state: state, patch: &patch.Patch{}}
	claim := r.claim(d)
	if !claim.isWithinAnother() {
		c.slot = r.Slots.Take(claim)
		if c.slot == nil {
			r.postpone(state)
			return nil
		}
		r.slots = append(r.slots, c.slot)
	}
	c.isFirst = state.unstarted
	if c.isFirst {
		state.Started = now()
		state.dirty = true
		state.unstarted = false
	}
	c.subs = subhandlers{runner: r, parent: d, ancestors: ancestors}
	ctx, arguments, span := r.Prepare(ctx, d)
	arguments.Patch = c.patch
	c.span = span
	essences := r.Essences
	if essences == nil {
		essences = func() *handler.Cause { return r.Cause }
	}
	c.ctx, c.attempt = begin(ctx, d, r.Backoff, handler.Attempt{Retry: state.Retries, Started: state.Started, Now: now()})
	c.change = handler.NewChange(d, arguments, c.attempt.Args, &c.subs, r.Cause.Reason, essences)
	c.change.Failures = state.follows
	r.Leave()
	return c
}

// Make calls the handler, unless one of its limits is exceeded. A handler that ends the
// goroutine has failed: call End in another one then.
func (c *Call) Make() {
	if !c.attempt.Allowed() {
		return
	}
	if err := c.runner.Interrupted(); err != nil {
		c.err = &handler.Interruption{Err: err}
		return
	}
	switch {
	case len(c.subs.ancestors) > 0: // the goroutine belongs to the call of the parent
		_, c.err = c.subs.parent.CallIsolated(c.ctx, c.change)
	default:
		c.err = handler.ErrExited // unless the handler returns
		_, c.err = c.subs.parent.Call(c.ctx, c.change)
	}
}

// End records the outcome of the attempt. The error is not the handler's: it ends the run.
func (c *Call) End() error {
	r := c.runner
	r.Enter()
	defer r.returnSlot(c.slot)
	d := c.subs.parent
	if c.attempt.Allowed() && c.err == nil {
		c.result, c.err = c.subs.afterParent(c.ctx, c.change)
		if c.err != nil {
			handler.ObserveFailure(c.ctx, c.change, c.err)
		}
	}
	outcome := c.attempt.end(c.ctx, c.result, c.err)
	counts := false
	defer func() { c.span.End(outcome, counts) }()
	var interruption *handler.Interruption
	switch {
	case c.subs.interrupted != nil:
		return c.subs.interrupted
	case errors.As(outcome.Err, &interruption):
		c.state.unstarted = c.isFirst
		return interruption.Err
	case r.ctx.Err() != nil && outcome.Err != nil:
		c.state.unstarted = c.isFirst
		return handler.ErrCanceled
	}
	misfit := handler.AsMisfit(outcome.Err)
	if misfit != nil {
		r.Progress.SetMisfit(d.ID, misfit)
		return nil
	}
	counts = true
	r.Attempts++
	c.state.apply(outcome)
	c.state.waiting = !c.state.Finished() && r.isBlocked(c.state)
	if c.state.Finished() {
		r.Progress.abandon(c.state.Subrefs)
	}
	outcome.HasEdit = outcome.Result != nil || !c.patch.Empty()
	if outcome.HasEdit {
		r.Edits = append(r.Edits, Edit{
			ID: d.ID, Result: outcome.Result, Patch: c.patch,
			Revise: func(err error) Outcome { return c.attempt.evaluate(c.ctx, nil, err) },
			Failed: func(err error) { handler.ObserveFailure(c.ctx, c.change, err) },
		})
	}
	r.AfterAttempt(c.ctx, d, outcome)
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

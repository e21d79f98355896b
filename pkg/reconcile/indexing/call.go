package indexing

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/events/handlerlog"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// minRetryDelay is the shortest delay between two attempts: a function that always
// fails must not block the watch all the time.
const minRetryDelay = 100 * time.Millisecond

// indexObject updates one index for one object. The attempts are those that failed
// before.
func (x *Indexer) indexObject(ctx context.Context, at entry, body *object.Body, attempts execution.Attempts) {
	outcome, matched := x.callWithFilters(ctx, at, body, &attempts)
	switch {
	case ctx.Err() != nil: // the outcome says nothing about the object
	case !matched:
		at.handler.Table.Remove(at.owner)
	case outcome.Err != nil:
		at.handler.Table.Remove(at.owner)
		known := &failure{uid: body.UID(), attempts: attempts}
		if !outcome.Final {
			known.timer = time.AfterFunc(max(outcome.Delay, minRetryDelay), func() { x.retry(ctx, at, known) })
		}
		x.failing[at] = known
	}
}

// retry indexes an object again after its delay. If the object is gone or replaced by
// now, the event about that is on its way.
func (x *Indexer) retry(ctx context.Context, at entry, known *failure) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failing[at] != known || ctx.Err() != nil {
		return
	}
	x.forgetFailure(at)
	if body := x.Current(at.owner); body != nil && body.UID() == known.uid {
		x.indexObject(ctx, at, body, known.attempts)
	}
}

// callWithFilters calls the function, unless the object does not match its filters or does not
// fit its Go type. A failing filter counts as an error of the function.
func (x *Indexer) callWithFilters(ctx context.Context, at entry, body *object.Body, attempts *execution.Attempts) (outcome execution.Outcome, matched bool) {
	ctx, call := x.Prepare(ctx, body, at.handler)
	failed := handler.WithRecover(func() error {
		matched = at.handler.InScope(&handler.Cause{CallContext: call})
		return nil
	})
	if !matched && failed == nil {
		x.noteMisfit(at, nil)
		return execution.Outcome{}, false
	}
	var misfit *handler.MisfitError
	outcome = attempts.Try(ctx, at.handler, x.Backoff, func(ctx context.Context, a handler.Attempt) (any, error) {
		if failed != nil {
			return nil, failed
		}
		err := at.callAndStore(ctx, call, a)
		misfit = handler.AsMisfit(err)
		return nil, err
	})
	if ctx.Err() == nil {
		x.noteMisfit(at, misfit)
	}
	if misfit != nil {
		return execution.Outcome{}, false
	}
	if ctx.Err() == nil {
		logFailure(handlerlog.LogOnly(call.Logger), outcome)
		if x.Measure != nil {
			x.Measure(at.handler, outcome)
		}
	}
	return outcome, true
}

func (x *Indexer) noteMisfit(at entry, misfit *handler.MisfitError) {
	if x.Misfit != nil {
		x.Misfit(at.owner, at.handler, misfit)
	}
}

// callAndStore calls the function, and puts the values that it returns into the index.
func (at entry) callAndStore(ctx context.Context, call handler.CallContext, a handler.Attempt) error {
	values, err := at.handler.CallIndex(ctx, handler.NewIndexed(call, at.handler.Param, a))
	if err != nil {
		return err
	}
	return at.handler.Table.Replace(at.owner, values)
}

// logFailure logs the outcome of a failed attempt. Successes are not logged: they are
// many, and of no interest.
func logFailure(log logr.Logger, o execution.Outcome) {
	var temporary *handler.TemporaryError
	switch {
	case o.Ignored != nil:
		log.Error(o.Ignored, "The object could not be indexed; its values in the index stay.", handler.StackValues(o.Ignored)...)
	case o.Err == nil:
	case o.Final:
		log.Error(o.Err, "The object could not be indexed; it is excluded from the index.", handler.StackValues(o.Err)...)
	case errors.As(o.Err, &temporary): // the function asks for it
		log.Info("The object is excluded from the index for now.", "error", o.Err.Error(), "delay", o.Delay.String())
	default:
		log.Error(o.Err, "The object could not be indexed; it is excluded from the index for now.", append(handler.StackValues(o.Err), "delay", o.Delay.String())...)
	}
}

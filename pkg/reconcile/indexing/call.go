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

// shortestPause is for errors without a delay: a function that fails all the time
// must not keep the watch waiting all the time.
const minRetryDelay = 100 * time.Millisecond

// index brings one object in one index up to date. The series is of the attempts
// that have failed before.
func (x *Indexer) indexObject(ctx context.Context, at entry, body *object.Body, attempts execution.Attempts) {
	outcome, matched := x.callWithFilters(ctx, at, body, &attempts)
	switch {
	case ctx.Err() != nil: // what it has come to says nothing of the object
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

// again indexes an object whose pause is over. It can be gone or replaced by now:
// then the event that tells so is on its way.
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

// attempt calls the function, unless the object does not match its filters. A
// filter that fails is an error of the function.
func (x *Indexer) callWithFilters(ctx context.Context, at entry, body *object.Body, attempts *execution.Attempts) (outcome execution.Outcome, matched bool) {
	ctx, subject := x.Prepare(ctx, body, at.handler)
	failed := handler.WithRecover(func() error {
		matched = at.handler.InScope(&handler.Cause{CallContext: subject})
		return nil
	})
	if !matched && failed == nil {
		return execution.Outcome{}, false
	}
	outcome = attempts.Try(ctx, at.handler, x.Backoff, func(ctx context.Context, a handler.Attempt) (any, error) {
		if failed != nil {
			return nil, failed
		}
		return nil, at.callAndStore(ctx, subject, a)
	})
	if ctx.Err() == nil {
		logFailure(handlerlog.LogOnly(subject.Logger), outcome)
		if x.Measure != nil {
			x.Measure(at.handler, outcome)
		}
	}
	return outcome, true
}

// call calls the function, and puts what it returns into the index.
func (at entry) callAndStore(ctx context.Context, subject handler.CallContext, a handler.Attempt) error {
	values, err := at.handler.CallIndex(ctx, handler.NewIndexed(subject, at.handler.Param, a))
	if err != nil {
		return err
	}
	return at.handler.Table.Replace(at.owner, values)
}

// report logs what has come of an attempt that has failed. Successes are many, and
// of no interest.
func logFailure(log logr.Logger, o execution.Outcome) {
	var temporary *handler.TemporaryError
	switch {
	case o.Ignored != nil:
		log.Error(o.Ignored, "The object could not be indexed; what the index has of it stays.", handler.StackValues(o.Ignored)...)
	case o.Err == nil:
	case o.Final:
		log.Error(o.Err, "The object could not be indexed; it is out of the index for ever.", handler.StackValues(o.Err)...)
	case errors.As(o.Err, &temporary): // the function wants it so
		log.Info("The object is out of the index for now.", "error", o.Err.Error(), "delay", o.Delay.String())
	default:
		log.Error(o.Err, "The object could not be indexed; it is out of the index for now.", append(handler.StackValues(o.Err), "delay", o.Delay.String())...)
	}
}

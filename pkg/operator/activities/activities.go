package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// Runner calls the handlers of the operator itself. It is safe for concurrent use.
type Runner struct {
	Logger logr.Logger
	// Backoff is the delay after an error of a handler that declares none.
	Backoff backoff.Backoff
	// Prepare adds the values for handlers to the context, and returns the common part
	// of their arguments.
	Prepare func(ctx context.Context, logger logr.Logger) (context.Context, handler.Operator)
}

// Result is the outcome of a handler.
type Result struct {
	ID    string
	Value any
	Err   error // the reason for a missing value; the handler is not retried
}

// InOrder calls handlers one after another, each after the previous one has succeeded,
// because a later handler can depend on an earlier one. It returns an error when a handler
// fails permanently, or when the context is done.
func (r Runner) InOrder(ctx context.Context, handlers registry.Handlers) error {
	for _, d := range handlers {
		if result := r.run(ctx, d); result.Err != nil {
			return failure(d, result.Err)
		}
	}
	return nil
}

// Each calls handlers one after another, even after failures. It returns all errors.
func (r Runner) Each(ctx context.Context, handlers registry.Handlers) error {
	var problems []error
	for _, d := range handlers {
		if result := r.run(ctx, d); result.Err != nil {
			problems = append(problems, failure(d, result.Err))
		}
	}
	return errors.Join(problems...)
}

// Together calls handlers concurrently, and returns their results in the order of the
// handlers.
func (r Runner) Together(ctx context.Context, handlers registry.Handlers) []Result {
	return together(handlers, func(d *handler.Declaration) Result { return r.run(ctx, d) })
}

// Once is like Together, but makes only one attempt for each handler, because the client is
// waiting for the response and will ask again.
func (r Runner) Once(ctx context.Context, handlers registry.Handlers) []Result {
	return together(handlers, func(d *handler.Declaration) Result {
		logger := r.logger(d)
		outcome := r.attempt(ctx, d, &call.Attempts{}, logger)
		if outcome.Err != nil {
			logger.Error(outcome.Err, fmt.Sprintf("The %s handler has failed.", d.Kind), handler.StackValues(outcome.Err)...)
		}
		return Result{ID: d.ID, Value: outcome.Result, Err: outcome.Err}
	})
}

func together(handlers registry.Handlers, call func(*handler.Declaration) Result) []Result {
	results := make([]Result, len(handlers))
	var all sync.WaitGroup
	for i, d := range handlers {
		all.Go(func() { results[i] = call(d) })
	}
	all.Wait()
	return results
}

func (r Runner) logger(d *handler.Declaration) logr.Logger {
	return r.Logger.WithValues("handler", d.ID)
}

func failure(d *handler.Declaration, err error) error {
	return fmt.Errorf("the %s handler %s (%s) has failed: %w", d.Kind, d.ID, d.DeclaredAt, err)
}

// run calls one handler until it succeeds or fails permanently.
func (r Runner) run(ctx context.Context, d *handler.Declaration) Result {
	logger := r.logger(d)
	var series call.Attempts
	for {
		outcome := r.attempt(ctx, d, &series, logger)
		if ctx.Err() != nil && !outcome.Succeeded() {
			return Result{ID: d.ID, Err: errors.Join(context.Cause(ctx), outcome.Err)}
		}
		report(logger, d.Kind, outcome)
		if outcome.Final {
			return Result{ID: d.ID, Value: outcome.Result, Err: outcome.Err}
		}
		if !sleep.For(ctx, outcome.Delay) {
			return Result{ID: d.ID, Err: errors.Join(context.Cause(ctx), outcome.Err)}
		}
	}
}

// attempt calls a handler once.
func (r Runner) attempt(ctx context.Context, d *handler.Declaration, series *call.Attempts, logger logr.Logger) call.Outcome {
	ctx, operator := r.Prepare(ctx, logger)
	return series.Try(ctx, d, r.Backoff, func(ctx context.Context, a handler.Attempt) (any, error) {
		return d.CallActivity(ctx, handler.NewActivity(operator, d.Param, a))
	})
}

// report logs the outcome of an attempt. Logins are repeated for the life of the operator,
// so only their failures are logged by default.
func report(log logr.Logger, kind handler.Kind, o call.Outcome) {
	success := log
	if kind == handler.OnLogin {
		success = log.V(1)
	}
	var temporary *handler.TemporaryError
	switch {
	case o.Ignored != nil:
		log.Error(o.Ignored, fmt.Sprintf("The %s handler has failed; its errors are ignored.", kind), handler.StackValues(o.Ignored)...)
	case o.Err == nil:
		success.Info(fmt.Sprintf("The %s handler has succeeded.", kind))
	case o.Final:
		log.Error(o.Err, fmt.Sprintf("The %s handler has failed permanently.", kind), handler.StackValues(o.Err)...)
	case errors.As(o.Err, &temporary): // the handler asks for it
		log.Info(fmt.Sprintf("The %s handler is called again.", kind), "error", o.Err.Error(), "delay", o.Delay.String())
	default:
		log.Error(o.Err, fmt.Sprintf("The %s handler has failed, and is called again.", kind), append(handler.StackValues(o.Err), "delay", o.Delay.String())...)
	}
}

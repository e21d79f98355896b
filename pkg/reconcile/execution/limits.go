package execution

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/model/handler"
)

// Outcome is the outcome of one attempt of a handler.
type Outcome struct {
	Called  bool          // false if a limit was exceeded before the attempt
	Final   bool          // no other attempt follows
	Delay   time.Duration // until the next attempt
	Err     error         // nil if the handler succeeded, or if its error is ignored
	Ignored error         // an error that does not count
	Result  any
	Took    time.Duration // how long the call took, if Called
	HasEdit bool          // the attempt left an Edit to be written to the object
}

// Succeeded reports whether the handler is done, and succeeded.
func (o Outcome) Succeeded() bool { return o.Final && o.Err == nil }

// limits restrict the attempts of a handler, and say what follows a failed one.
type limits struct {
	id      string
	mode    handler.ErrorsMode
	timeout time.Duration
	retries *int
	backoff backoff.Backoff
}

// limitsOf returns the limits of a handler. The standard backoff applies if the
// handler declares none.
func limitsOf(d *handler.Declaration, standard backoff.Backoff) limits {
	return limits{handler.ReportedID(d), d.Errors, d.Timeout, d.Retries, d.Backoff.Or(standard)}
}

// exceeded returns an error if a limit rules out another attempt, after this many
// earlier attempts and this much time since the first of them.
func (l limits) exceeded(retries int, runtime time.Duration, last error) error {
	switch {
	case l.timeout > 0 && runtime >= l.timeout:
		return &handler.TimeoutError{ID: l.id, Timeout: l.timeout, Err: last}
	case l.retries != nil && retries >= *l.retries:
		return &handler.RetriesError{ID: l.id, Retries: *l.retries, Err: last}
	}
	return nil
}

// elapsed returns the time between two times. The first is that of another process, whose clock may
// have been ahead.
func elapsed(from, to time.Time) time.Duration { return max(0, to.Sub(from)) }

// withTimeout returns the context of one call, or an error if a limit is exceeded.
func (l limits) withTimeout(ctx context.Context, a handler.Attempt) (context.Context, context.CancelFunc, error) {
	runtime := elapsed(a.Started, a.Now)
	if err := l.exceeded(a.Retry, runtime, nil); err != nil {
		return ctx, nil, err
	}
	if l.timeout == 0 {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.timeout-runtime, &handler.TimeoutError{ID: l.id, Timeout: l.timeout})
	return ctx, cancel, nil
}

// evaluate returns the outcome of a call that was made with the context.
func (l limits) evaluate(ctx context.Context, a handler.Attempt, result any, err error) Outcome {
	took := now().Sub(a.Now)
	outcome := l.classify(a.Retry, err)
	outcome.Called = true
	if outcome.Succeeded() {
		outcome.Result = result
	} else {
		outcome = l.failEarly(ctx, a, outcome)
	}
	outcome.Took = took
	return outcome
}

// classify decides by the error of a call, which follows this many earlier ones, what
// happens next.
func (l limits) classify(retry int, err error) Outcome {
	var temporary *handler.TemporaryError
	var children *handler.SubhandlersError
	switch {
	case err == nil:
		return Outcome{Final: true}
	case errors.As(err, &children):
		return Outcome{Err: err, Delay: children.Delay}
	case handler.IsPermanent(err):
		return Outcome{Err: err, Final: true}
	case errors.As(err, &temporary):
		return Outcome{Err: err, Delay: max(0, temporary.Delay)}
	case l.mode == handler.ErrorsIgnored:
		return Outcome{Final: true, Ignored: err}
	case l.mode == handler.ErrorsPermanent:
		return Outcome{Final: true, Err: err}
	default:
		return Outcome{Err: err, Delay: l.backoff.Delay(retry)}
	}
}

// failEarly fails a handler at once if its next attempt would exceed a limit: waiting
// for that attempt would gain nothing.
func (l limits) failEarly(ctx context.Context, a handler.Attempt, o Outcome) Outcome {
	if o.Final {
		return o
	}
	var timeout *handler.TimeoutError
	if errors.As(context.Cause(ctx), &timeout) {
		return Outcome{Called: true, Final: true, Err: &handler.TimeoutError{ID: timeout.ID, Timeout: timeout.Timeout, Err: o.Err}}
	}
	if err := l.exceeded(a.Retry+1, elapsed(a.Started, now())+o.Delay, o.Err); err != nil {
		return Outcome{Called: true, Final: true, Err: err}
	}
	return o
}

// apply updates the record by the outcome of an attempt.
func (s *State) apply(o Outcome) {
	s.Retries++
	s.dirty = true
	s.active = true
	switch {
	case o.Succeeded():
		s.finish(true, "")
	case o.Final:
		s.finish(false, o.Err.Error())
	default:
		s.Delayed, s.Message = time.Time{}, o.Err.Error()
		if o.Delay > 0 {
			s.Delayed = now().Add(o.Delay)
		}
	}
}

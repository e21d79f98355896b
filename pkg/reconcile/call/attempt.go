package call

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/backoff"
)

// Attempt is one attempt of a handler, within the limits that the handler declares.
type Attempt struct {
	// Args becomes a part of the handler's arguments.
	Args handler.Attempt

	handler  *handler.Declaration
	backoff  backoff.Backoff
	limitErr error // the exceeded limit; nil if the attempt is allowed
	cancel   context.CancelFunc
}

// begin begins an attempt. The standard backoff applies to handlers that declare none. The
// returned context is for the handler: it ends with the handler's timeout. The caller calls the
// handler if the attempt is Allowed, and calls end in any case.
func begin(ctx context.Context, d *handler.Declaration, standard backoff.Backoff, args handler.Attempt) (context.Context, Attempt) {
	a := Attempt{Args: args, handler: d, backoff: d.Backoff.Or(standard)}
	runtime := elapsed(args.Started, args.Now)
	a.limitErr = a.exceeded(args.Retry, runtime, nil)
	a.cancel = func() {}
	if a.limitErr == nil && d.Timeout > 0 {
		ctx, a.cancel = context.WithTimeoutCause(ctx, d.Timeout-runtime, &handler.TimeoutError{ID: handler.ReportedID(d), Timeout: d.Timeout})
	}
	return ctx, a
}

// Allowed reports whether the handler may be called: none of its limits is exceeded yet.
func (a *Attempt) Allowed() bool { return a.limitErr == nil }

// end ends the attempt with what the handler returned, and returns its outcome. The context is the
// one that begin returned.
func (a *Attempt) end(ctx context.Context, result any, err error) Outcome {
	defer a.cancel()
	if a.limitErr != nil {
		return Outcome{Final: true, Err: a.limitErr}
	}
	return a.evaluate(ctx, result, err)
}

// Attempts counts the attempts of a handler that has no record on the object, such as a daemon, a
// timer, or an indexing function. After a final attempt, the count starts again. Handlers with a
// record have a State instead. The zero value is ready to use. Attempts is not safe for concurrent
// use.
//
// Specification: Error handling; Timers, "Errors in timers".
type Attempts struct {
	started time.Time // of the first attempt; zero before it
	retries int
}

// Retries returns the number of attempts since the last final one.
func (s *Attempts) Retries() int { return s.retries }

// Begin begins an attempt. The standard backoff applies to handlers that declare none. The
// returned context is for the handler: it ends with the handler's timeout. The caller calls the
// handler if the attempt is Allowed, and calls End or Cancel in any case.
func (s *Attempts) Begin(ctx context.Context, d *handler.Declaration, standard backoff.Backoff) (context.Context, Attempt) {
	at := now()
	if s.started.IsZero() {
		s.started = at
	}
	return begin(ctx, d, standard, handler.Attempt{Retry: s.retries, Started: s.started, Now: at})
}

// End ends an attempt with what the handler returned. The context is the one that Begin returned.
func (s *Attempts) End(ctx context.Context, a *Attempt, result any, err error) Outcome {
	outcome := a.end(ctx, result, err)
	s.retries++
	if outcome.Final {
		*s = Attempts{}
	}
	return outcome
}

// Cancel ends an attempt that does not count.
func (s *Attempts) Cancel(a *Attempt) {
	a.cancel()
	if s.retries == 0 {
		*s = Attempts{}
	}
}

// Try makes one attempt: it calls Begin, the handler if allowed, and End.
func (s *Attempts) Try(ctx context.Context, d *handler.Declaration, standard backoff.Backoff,
	call func(ctx context.Context, args handler.Attempt) (any, error),
) Outcome {
	ctx, attempt := s.Begin(ctx, d, standard)
	var result any
	var err error
	if attempt.Allowed() {
		result, err = call(ctx, attempt.Args)
	}
	return s.End(ctx, &attempt, result, err)
}

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

// exceeded returns an error if a limit rules out another attempt, after this many
// earlier attempts and this much time since the first of them.
func (a *Attempt) exceeded(retries int, runtime time.Duration, last error) error {
	d := a.handler
	switch {
	case d.Timeout > 0 && runtime >= d.Timeout:
		return &handler.TimeoutError{ID: handler.ReportedID(d), Timeout: d.Timeout, Err: last}
	case d.Retries != nil && retries >= *d.Retries:
		return &handler.RetriesError{ID: handler.ReportedID(d), Retries: *d.Retries, Err: last}
	}
	return nil
}

// elapsed returns the time between two times. The first is that of another process, whose clock may
// have been ahead.
func elapsed(from, to time.Time) time.Duration { return max(0, to.Sub(from)) }

// evaluate returns the outcome of a call that was made with the context. A handler fails at once if
// its next attempt would exceed a limit: waiting for that attempt would gain nothing.
func (a *Attempt) evaluate(ctx context.Context, result any, err error) Outcome {
	took := now().Sub(a.Args.Now)
	outcome := a.classify(err)
	if outcome.Succeeded() {
		outcome.Result = result
	}
	if !outcome.Final {
		var timeout *handler.TimeoutError
		if errors.As(context.Cause(ctx), &timeout) {
			outcome = Outcome{Final: true, Err: &handler.TimeoutError{ID: timeout.ID, Timeout: timeout.Timeout, Err: outcome.Err}}
		} else if err := a.exceeded(a.Args.Retry+1, elapsed(a.Args.Started, now())+outcome.Delay, outcome.Err); err != nil {
			outcome = Outcome{Final: true, Err: err}
		}
	}
	outcome.Called = true
	outcome.Took = took
	return outcome
}

// classify decides by the error of a call what happens next.
func (a *Attempt) classify(err error) Outcome {
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
	case a.handler.Errors == handler.ErrorsIgnored:
		return Outcome{Final: true, Ignored: err}
	case a.handler.Errors == handler.ErrorsPermanent:
		return Outcome{Final: true, Err: err}
	default:
		return Outcome{Err: err, Delay: a.backoff.Delay(a.Args.Retry)}
	}
}

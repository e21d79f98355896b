package execution

import (
	"context"
	"time"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/model/handler"
)

// Attempts counts the attempts of a handler that has no record on the object, such
// as a daemon, a timer, or an indexing function. After a final attempt, the count
// starts again. Handlers with a record have a State instead; limits decide for both what
// follows an attempt. The zero value is ready to use. Attempts is not safe for concurrent
// use.
//
// Specification: Error handling; Timers, "Errors in timers".
type Attempts struct {
	started time.Time // of the first attempt; zero before it
	retries int
}

// Attempt is one attempt of a handler, from Begin to End.
type Attempt struct {
	// Args becomes a part of the handler's arguments.
	Args handler.Attempt

	limits   limits
	limitErr error // the exceeded limit; nil if the attempt is allowed
	cancel   context.CancelFunc
}

// Allowed reports whether the handler may be called: none of its limits is exceeded
// yet.
func (t *Attempt) Allowed() bool { return t.limitErr == nil }

// Begin begins an attempt. The standard backoff applies to handlers that declare
// none. The
// returned context is for the handler: it ends with the handler's timeout. The
// caller calls the handler if the attempt is Allowed, and calls End in any case.
func (a *Attempts) Begin(ctx context.Context, d *handler.Declaration, standard backoff.Backoff) (context.Context, Attempt) {
	t := Attempt{limits: limitsOf(d, standard)}
	t.Args = handler.Attempt{Retry: a.retries, Started: a.started, Now: now()}
	if a.started.IsZero() {
		a.started = t.Args.Now
		t.Args.Started = t.Args.Now
	}
	ctx, t.cancel, t.limitErr = t.limits.withTimeout(ctx, t.Args)
	return ctx, t
}

// End ends an attempt with what the handler returned. The context is the one that
// Begin returned.
func (a *Attempts) End(ctx context.Context, t *Attempt, result any, err error) Outcome {
	outcome := Outcome{Final: true, Err: t.limitErr}
	if t.Allowed() {
		outcome = t.limits.evaluate(ctx, t.Args, result, err)
		t.cancel()
	}
	a.retries++
	if outcome.Final {
		*a = Attempts{}
	}
	return outcome
}

// Cancel ends an attempt that does not count.
func (a *Attempts) Cancel(t *Attempt) {
	if t.Allowed() {
		t.cancel()
	}
	if a.retries == 0 {
		*a = Attempts{}
	}
}

// Try makes one attempt: it calls Begin, the handler if allowed, and End.
func (a *Attempts) Try(ctx context.Context, d *handler.Declaration, standard backoff.Backoff,
	call func(ctx context.Context, args handler.Attempt) (any, error),
) Outcome {
	ctx, attempt := a.Begin(ctx, d, standard)
	var result any
	var err error
	if attempt.Allowed() {
		result, err = call(ctx, attempt.Args)
	}
	return a.End(ctx, &attempt, result, err)
}

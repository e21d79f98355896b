package execution

import (
	"context"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// Attempts counts the attempts of a handler that keeps no record on the object: a
// daemon, a timer, an index. It begins with the first attempt, and ends when one
// of them is final; the next attempt then begins another one. The zero value has
// not begun. It is for one goroutine at a time.
//
// Specification: Error handling; Timers, "Errors in timers".
type Attempts struct {
	started time.Time // the first attempt; zero: none yet
	retries int
}

// Attempt is one attempt of a series, from Begin to End.
type Attempt struct {
	// Args is for the arguments of the handler.
	Args handler.Attempt

	limits   limits
	limitErr error // the limit that does not allow it
	cancel   context.CancelFunc
}

// Allowed tells whether the handler is to be called: whether none of its limits
// is over already.
func (t *Attempt) Allowed() bool { return t.limitErr == nil }

// Begin begins an attempt. The backoff is for handlers that have none of their
// own. The context is for the handler: it ends with the handler's timeout. The
// caller calls the handler if that is Allowed, and calls End in any case.
func (s *Attempts) Begin(ctx context.Context, d *handler.Declaration, backoff time.Duration) (context.Context, Attempt) {
	t := Attempt{limits: limitsOf(d, backoff)}
	t.Args = handler.Attempt{Retry: s.retries, Started: s.started, Now: now()}
	if s.started.IsZero() {
		s.started, t.Args.Started = t.Args.Now, t.Args.Now
	}
	ctx, t.cancel, t.limitErr = t.limits.withTimeout(ctx, t.Args)
	return ctx, t
}

// End ends an attempt with what the handler has returned. The context is the one
// of Begin.
func (s *Attempts) End(ctx context.Context, t *Attempt, result any, err error) Outcome {
	outcome := Outcome{Final: true, Err: t.limitErr}
	if t.Allowed() {
		outcome = t.limits.evaluate(ctx, t.Args, result, err)
		t.cancel()
	}
	s.retries++
	if outcome.Final {
		*s = Attempts{}
	}
	return outcome
}

// Try is Begin, the call, and End in one.
func (s *Attempts) Try(ctx context.Context, d *handler.Declaration, backoff time.Duration,
	call func(ctx context.Context, a handler.Attempt) (any, error),
) Outcome {
	ctx, trial := s.Begin(ctx, d, backoff)
	var result any
	var err error
	if trial.Allowed() {
		result, err = call(ctx, trial.Args)
	}
	return s.End(ctx, &trial, result, err)
}

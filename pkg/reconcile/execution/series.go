package execution

import (
	"context"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// Series counts the attempts of a handler that keeps no record on the object: a
// daemon, a timer, an index. It begins with the first attempt, and ends when one
// of them is final; the next attempt then begins another one. The zero value has
// not begun. It is for one goroutine at a time.
//
// Specification: Error handling; Timers, "Errors in timers".
type Series struct {
	started time.Time // the first attempt; zero: none yet
	retries int
}

// Trial is one attempt of a series, from Begin to End.
type Trial struct {
	// Attempt is for the arguments of the handler.
	Attempt handler.Attempt

	limits limits
	over   error // the limit that does not allow it
	cancel context.CancelFunc
}

// Allowed tells whether the handler is to be called: whether none of its limits
// is over already.
func (t *Trial) Allowed() bool { return t.over == nil }

// Begin begins an attempt. The backoff is for handlers that have none of their
// own. The context is for the handler: it ends with the handler's timeout. The
// caller calls the handler if that is Allowed, and calls End in any case.
func (s *Series) Begin(ctx context.Context, d *handler.Declaration, backoff time.Duration) (context.Context, Trial) {
	t := Trial{limits: limitsOf(d, backoff)}
	t.Attempt = handler.Attempt{Retry: s.retries, Started: s.started, Now: now()}
	if s.started.IsZero() {
		s.started, t.Attempt.Started = t.Attempt.Now, t.Attempt.Now
	}
	ctx, t.cancel, t.over = t.limits.begin(ctx, t.Attempt)
	return ctx, t
}

// End ends an attempt with what the handler has returned. The context is the one
// of Begin.
func (s *Series) End(ctx context.Context, t *Trial, result any, err error) Outcome {
	outcome := Outcome{Final: true, Err: t.over}
	if t.Allowed() {
		outcome = t.limits.end(ctx, t.Attempt, result, err)
		t.cancel()
	}
	s.retries++
	if outcome.Final {
		*s = Series{}
	}
	return outcome
}

// Try is Begin, the call, and End in one.
func (s *Series) Try(ctx context.Context, d *handler.Declaration, backoff time.Duration,
	call func(ctx context.Context, a handler.Attempt) (any, error),
) Outcome {
	ctx, trial := s.Begin(ctx, d, backoff)
	var result any
	var err error
	if trial.Allowed() {
		result, err = call(ctx, trial.Attempt)
	}
	return s.End(ctx, &trial, result, err)
}

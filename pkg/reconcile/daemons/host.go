package daemons

import (
	"context"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Host is the engine's side of one object. Its methods are called from many
// goroutines, and never under a lock: they may block, and may call the Group.
type Host interface {
	// Prepare makes the context and the subject of one call of a handler. The
	// subject is live, and its patch is not used.
	Prepare(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext)
	// WriteEdit has written what a handler wants. It returns when that is done, or
	// nobody is there any more to write it to (nil), when it was refused (the
	// error), or when the context is done. The handler is not called again until
	// then, so that calls cannot pile up while the API server is away.
	WriteEdit(ctx context.Context, c execution.Edit) error
	// Report tells what has come of an attempt: of every one that has failed,
	// and of a daemon that has ended by itself. The context is of the attempt.
	Report(ctx context.Context, d *handler.Declaration, o execution.Outcome)
	// Measure is told what has come of every attempt, before it has an effect.
	Measure(d *handler.Declaration, o execution.Outcome)
	// Warn tells of something unusual, in the log and as an event: one of the
	// reasons below.
	Warn(d *handler.Declaration, reason, message string)
	// Requeue asks for a pass over the object: a handler that was waited for has
	// ended or was abandoned, or one that matches again can start now.
	Requeue()
}

// The reasons of warnings.
const (
	// ReasonAbandoned is a handler that has not returned in time and is not waited for
	// any longer.
	ReasonAbandoned = "Abandoned"
	// ReasonStopping is a daemon that was asked to stop, and is still waited for.
	ReasonStopping = "Stopping"
	// ReasonWriteRejected is a handler whose changes of the object were not accepted.
	ReasonWriteRejected = "WriteRejected"
)

// Options configure a Supervisor.
type Options struct {
	// Backoff is the pause after a regular error of a handler that has none of
	// its own. Default: settings.DefaultBackoff.
	Backoff time.Duration
	// CancellationPolling is the pause between two warnings about a daemon that does not
	// stop, if the daemon has none of its own. Default: settings.DefaultCancellationPolling.
	CancellationPolling time.Duration
}

func (o Options) withDefaults() Options {
	if o.Backoff == 0 {
		o.Backoff = settings.DefaultBackoff
	}
	if o.CancellationPolling == 0 {
		o.CancellationPolling = settings.DefaultCancellationPolling
	}
	return o
}

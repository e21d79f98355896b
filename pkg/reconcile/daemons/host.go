package daemons

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Host is the engine's side of one object. Its methods are called from many
// goroutines, and without a lock: they may block, and may call the Group.
type Host interface {
	// CanCall reports whether a call may begin now: no other process may handle the object. Other than the other methods,
	// it is also called with a lock held.
	CanCall() bool
	// Prepare returns the context of one call of a handler, and the CallContext for
	// its arguments. The CallContext is live; its patch is not used.
	Prepare(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext)
	// WriteEdit writes what a handler wants to write. It returns when the edit is
	// written, when the object is gone (nil), when the edit is rejected (the error),
	// or when the context is done. The handler is not called again before that, so
	// that calls do not pile up while the API server is unavailable.
	WriteEdit(ctx context.Context, c call.Edit) error
	// Write writes what a daemon wants to write before it returns. It returns when the edit is written, or with the error
	// that says why it is not: handler.ErrGone, a handler.WriteError, or that of the context. Only in the last case, the
	// edit may still be written.
	Write(ctx context.Context, d *handler.Declaration, c call.Edit) (ended bool, err error)
	// Follow calls the function when something changes that a daemon looks at, except by writes of the operator itself to
	// the object, until it is ended. The function must return at once.
	Follow(d *handler.Declaration, wake func()) (end func())
	// Children returns the children that a daemon looks at.
	Children(d *handler.Declaration) []*object.Snapshot
	// LastRun returns the last run of a timer with a schedule that has ended, as it is stored on the
	// object. Without one, it returns a record that has started when the object was created.
	LastRun(ctx context.Context, d *handler.Declaration) (storage.Record, error)
	// PutRun adds the end of a run to what the timer wants to write.
	PutRun(ctx context.Context, d *handler.Declaration, run storage.Record, into *patch.Patch) error
	// Trace starts the span of an attempt, and returns its context and its end, which is nil without a span.
	Trace(ctx context.Context, d *handler.Declaration, a handler.Attempt) (context.Context, call.EndSpan)
	// Report reports the outcome of an attempt: of every failed one, and of a daemon
	// that has ended by itself. The context is the attempt's.
	Report(ctx context.Context, d *handler.Declaration, o call.Outcome)
	// ReportRun reports that a run of a timer with a schedule has succeeded.
	ReportRun(d *handler.Declaration, run time.Time)
	// ReportUnscheduled reports that the next run of a timer with a schedule is unknown. It is looked for again after the
	// delay, or when the object has changed if there is none.
	ReportUnscheduled(d *handler.Declaration, err error, delay time.Duration)
	// Measure counts the outcome of every attempt, before the outcome takes effect.
	Measure(d *handler.Declaration, o call.Outcome)
	// Warn reports something unusual in the log and as an event. The reason is one of
	// the constants below.
	Warn(d *handler.Declaration, reason, message string)
	// Requeue requests a pass over the object: a daemon that was waited for has ended
	// or was abandoned, or a handler that matches again can start now.
	Requeue()
	// Identity returns the object. Other than the other methods, it is called with a lock held.
	Identity() Identity
}

// Identity tells an object from all others, also from earlier ones of its name.
type Identity struct {
	Resource string
	UID      types.UID
}

// Reasons of warnings.
const (
	// ReasonAbandoned is for a handler that has not returned in time and is no longer
	// waited for.
	ReasonAbandoned = "Abandoned"
	// ReasonEditLost is for a handler that has returned, but whose result and patch could
	// not be written before the operator stopped.
	ReasonEditLost = "EditLost"
	// ReasonStopping is for a daemon that was asked to stop and is still waited for.
	ReasonStopping = "Stopping"
	// ReasonWriteRejected is for a handler whose edit was rejected.
	ReasonWriteRejected = "WriteRejected"
)

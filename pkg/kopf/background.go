package kopf

import (
	"context"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

// Task has the arguments of a daemon. The object is live: the methods return
// the current state, so do not keep the results for long. Use it only in the daemon's goroutine;
// the Patch can be shared.
//
// A daemon is called once, and runs as long as
// the object exists and matches. It must return soon after Stopped is closed. If it
// returns earlier, with or without a permanent error, it is not called again before the
// operator is restarted; after any other error, it is called again. Depending on its
// options, its context is canceled if it takes too long to stop.
//
// Specification: Arguments; Daemons, "Resource fields access".
type Task struct {
	reading
	writing
	retrying
	answering
}

func taskOf(c *handler.Call) *Task { return &Task{reading{c}, writing{c}, retrying{c}, answering{c}} }

// Stopped returns a channel that is closed when the daemon must stop.
//
// Specification: Daemons, "Termination".
func (t *Task) Stopped() <-chan struct{} { return t.reading.call.Stopped() }

// StopReason returns why the daemon must stop, or 0 if it does not have to stop.
func (t *Task) StopReason() stop.Reason { return t.reading.call.StopReason() }

// Wait sleeps until the pause is over or the daemon must return, because it was asked to
// stop or the context of the call is done. It reports whether the daemon must return:
//
//	for !t.Wait(10 * time.Second) {
//		check(t.Spec())
//	}
//
// Specification: Daemons, "Safe sleep".
func (t *Task) Wait(pause time.Duration) (stopped bool) { return t.reading.call.Wait(pause) }

// WaitForChange is Wait, but it also ends when what the daemon looks at has changed: the fields of WakeOn, and the children
// of WatchChildren. Then the arguments and Children are at least as new as the change. It reports whether the daemon
// must return:
//
//	for {
//		again, err := reconcile(ctx, t)
//		if err != nil {
//			return err
//		}
//		if t.WaitForChange(again) {
//			return nil
//		}
//	}
//
// No change is lost: one that has happened since the daemon was called, or since the last WaitForChange, ends the
// wait at once. Several changes count as one. What the operator itself writes to the object, for this daemon or for
// other handlers, is no change; what handlers write with their own client is one.
func (t *Task) WaitForChange(limit time.Duration) (stopped bool) {
	return t.reading.call.WaitForChange(limit)
}

// Changed returns a channel that has a value when what the daemon looks at has changed, to wait for it together with
// something else; see WaitForChange, which takes the value from the same channel. It is nil without WakeOn and WatchChildren.
func (t *Task) Changed() <-chan struct{} { return t.reading.call.Changed() }

// Write writes what the daemon has collected so far, its Patch and its result, and returns when it is stored: the
// arguments show it then. The patch and the result are empty afterwards, also after an error. If there is nothing to
// write, there is no request.
//
// It is the operator that writes, as for all handlers: together with what others want to write to the object, and
// again after a conflict. So it waits for the handlers of the object that are running, and as long as the API server is not
// available. The errors are:
//
//   - a WriteError, if the API server refuses the write, or if a function of the patch returns an error. It
//     wraps that error, so apierrors.IsInvalid(err) can be asked;
//   - ErrGone, if the object does not exist anymore, or is not watched anymore;
//   - that of the context, if it is done before, and context.Canceled or the like at the end of the operator. Then
//     the write goes on, and the operator waits for it when the daemon has returned.
//
// A daemon can return all of them. A daemon that must stop can still write.
func (t *Task) Write(ctx context.Context) error { return t.reading.call.Write(ctx) }

// Children returns the children of the object of the kinds of WatchChildren that exist now, sorted by resource, namespace,
// and name, as the watch has shown them: a child that the daemon has just created can be missing until the change
// wakes it. Each of them is decoded when it is used.
func (t *Task) Children() []*object.Body { return bodiesOf(t.reading.call.Children()) }

// Tick has the arguments of a timer. The object is live: the methods return the
// current state. Use it only while the timer runs, and only in its goroutine; the Patch can be
// shared.
//
// A timer is never called twice at the same time for an object. When the
// object is deleted or no longer matches, the context of a running call is canceled.
//
// Specification: Arguments; Timers.
type Tick struct {
	reading
	writing
	retrying
	answering
}

func tickOf(c *handler.Call) *Tick { return &Tick{reading{c}, writing{c}, retrying{c}, answering{c}} }

// Stopped returns a channel that is closed when the timer must stop: there will be no
// further calls, and this one should end soon. For why, see StopReason.
func (t *Tick) Stopped() <-chan struct{} { return t.reading.call.Stopped() }

// StopReason returns why the timer must stop, or 0 if it does not have to stop.
func (t *Tick) StopReason() stop.Reason { return t.reading.call.StopReason() }

// Scheduled returns the time of the schedule that the call is for, in the time zone of the schedule. It stays the same
// when the call is repeated after an error, and after a restart of the operator, so names of jobs can contain it: in UTC,
// because the clocks show the same time twice when they go back. It is zero for a timer without a schedule.
func (t *Tick) Scheduled() time.Time {
	if t.reading.call.Run == nil {
		return time.Time{}
	}
	return *t.reading.call.Run
}

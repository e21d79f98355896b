package kopf

import (
	"time"

	"github.com/kopf-go/kopf/internal/handler"
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

// Scheduled returns the time of the schedule that the call is for, in UTC. It stays the same when the call is
// repeated after an error, and after a restart of the operator, so names of jobs can contain it. It is zero for a timer
// without a schedule.
func (t *Tick) Scheduled() time.Time {
	if t.reading.call.Run == nil {
		return time.Time{}
	}
	return *t.reading.call.Run
}

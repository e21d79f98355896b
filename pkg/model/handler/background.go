package handler

import (
	"context"
	"time"
)

// DaemonFunc accompanies an object: it is called once, and runs as long as the
// object exists and matches. It has to return soon after Task.Stopped is closed.
// When it returns before, with or without a permanent error, it is not called
// again before the operator is restarted; after any other error it is. The context
// is cancelled when it takes too long to stop, as it was declared.
//
// Specification: Daemons.
type DaemonFunc func(ctx context.Context, t *Task) error

// TimerFunc is called for an object again and again, never twice at the same time.
//
// Specification: Timers.
type TimerFunc func(ctx context.Context, t *Tick) error

// Tick is the arguments of a TimerFunc. The object is live: every look at it shows
// it as it is by then.
//
// Specification: Arguments; Timers.
type Tick struct {
	writable
	attemptInfo
	resultHolder
}

var _ Arguments = (*Tick)(nil)

// NewTick makes the arguments of one call.
func NewTick(s CallContext, param any, a Attempt) *Tick {
	return &Tick{writable: newWritable(s, param), attemptInfo: attemptInfo{a}}
}

// Task is the arguments of a DaemonFunc. The object is live: every look at it
// shows it as it is by then, so do not keep parts of it for long.
//
// Specification: Arguments; Daemons, "Resource fields access".
type Task struct {
	writable
	attemptInfo
	resultHolder
	stop *Stopper
	// expired is closed when the context of the call is done; nil: never.
	contextDone <-chan struct{}
}

var _ Arguments = (*Task)(nil)

// NewTask makes the arguments of one run. The stopper is the engine's side of it;
// without one, nobody stops the daemon.
func NewTask(s CallContext, param any, a Attempt, stop *Stopper) *Task {
	if stop == nil {
		stop = NewStopper()
	}
	return &Task{writable: newWritable(s, param), attemptInfo: attemptInfo{a}, stop: stop}
}

// Stopped is closed when the daemon has to stop.
//
// Specification: Daemons, "Termination".
func (t *Task) Stopped() <-chan struct{} { return t.stop.Done() }

// StopReason tells why the daemon has to stop; 0 as long as it has not.
func (t *Task) StopReason() StopReason { return t.stop.Reason() }

// Wait sleeps, but not longer than until the daemon has to return: because it was
// asked to stop, or because the context of the call is done. It tells whether that
// is so:
//
//	for !t.Wait(10 * time.Second) {
//		check(t.Spec())
//	}
//
// Specification: Daemons, "Safe sleep".
func (t *Task) Wait(pause time.Duration) (stopped bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-t.Stopped():
		return true
	case <-t.contextDone:
		return true
	case <-timer.C:
		return t.isStopping() // both at the same time: no other round
	}
}

func (t *Task) isStopping() bool {
	select {
	case <-t.Stopped():
		return true
	case <-t.contextDone:
		return true
	default:
		return false
	}
}

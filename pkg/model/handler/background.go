package handler

import (
	"context"
	"strings"
	"sync"
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
// asked to stop, or because the context of the call is done. It reports whether that
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

// StopReason is why a daemon has to stop: a set, for several reasons can come
// together, and later ones come on top.
type StopReason uint8

// The reasons, and how far the termination is.
const (
	StopDeleted   StopReason = 1 << iota // the object is deleted, or marked for it
	StopMismatch                         // the object does not match the filters any more
	StopPaused                           // the operator is paused
	StopExiting                          // the operator exits
	StopSignalled                        // the daemon was asked to stop
	StopCancelled                        // its context was cancelled
	StopAbandoned                        // nobody waits for it any more
)

var stopNames = [...]string{"deleted", "mismatch", "paused", "exiting", "signalled", "cancelled", "abandoned"}

// Has reports whether all of the given reasons are among these.
func (r StopReason) Has(reason StopReason) bool { return r&reason == reason }

// String lists the reasons: "deleted|signalled"; empty if there are none.
func (r StopReason) String() string {
	var names []string
	for i, name := range stopNames {
		if r.Has(1 << i) {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// Stopper is the engine's side of a daemon's stop. Its zero value is ready to use,
// and safe for concurrent use.
type Stopper struct {
	mu     sync.Mutex
	done   chan struct{}
	reason StopReason
}

// NewStopper makes one for a daemon that is about to start.
func NewStopper() *Stopper { return &Stopper{} }

// Stop asks the daemon to stop, and adds to the reasons.
func (s *Stopper) Stop(reason StopReason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason == 0 && reason != 0 {
		close(s.channel())
	}
	s.reason |= reason
}

// Done is closed when the daemon is asked to stop.
func (s *Stopper) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channel()
}

// channel is made when it is needed first. The lock is held.
func (s *Stopper) channel() chan struct{} {
	if s.done == nil {
		s.done = make(chan struct{})
	}
	return s.done
}

// Reason is why; 0 as long as it is not.
func (s *Stopper) Reason() StopReason {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

package handler

import (
	"context"
	"strings"
	"sync"
	"time"
)

// DaemonFunc runs in the background of an object: it is called once, and runs as long as
// the object exists and matches. It must return soon after Task.Stopped is closed. If it
// returns earlier, with or without a permanent error, it is not called again before the
// operator is restarted; after any other error, it is called again. Depending on its
// options, the context is canceled if it takes too long to stop.
//
// Specification: Daemons.
type DaemonFunc func(ctx context.Context, t *Task) error

// TimerFunc is called repeatedly for an object, but never twice at the same time. When the
// object is deleted or no longer matches, the context of a running call is canceled.
//
// Specification: Timers.
type TimerFunc func(ctx context.Context, t *Tick) error

// Tick contains the arguments of a TimerFunc. The object is live: its methods return the
// current state.
//
// Specification: Arguments; Timers.
type Tick struct {
	writable
	attemptInfo
	resultHolder
	stop *Stopper // nil: never stopped
}

var _ Arguments = (*Tick)(nil)

// NewTick returns the arguments of one call. The engine stops the timer with the stopper.
// Without a stopper, the timer is never stopped.
func NewTick(s CallContext, param any, a Attempt, stop *Stopper) *Tick {
	return &Tick{writable: newWritable(s, param), attemptInfo: attemptInfo{a}, stop: stop}
}

// Stopped returns a channel that is closed when the timer must stop: there will be no
// further calls, and this one should end soon. For why, see StopReason.
func (t *Tick) Stopped() <-chan struct{} {
	if t.stop == nil {
		return nil
	}
	return t.stop.Done()
}

// StopReason returns why the timer must stop, or 0 if it does not have to stop.
func (t *Tick) StopReason() StopReason {
	if t.stop == nil {
		return 0
	}
	return t.stop.Reason()
}

// Task contains the arguments of a DaemonFunc. The object is live: its methods return
// the current state, so do not keep the results for long.
//
// Specification: Arguments; Daemons, "Resource fields access".
type Task struct {
	writable
	attemptInfo
	resultHolder
	stop *Stopper
	// expired is closed when the context of the call is done. Nil means never.
	contextDone <-chan struct{}
}

var _ Arguments = (*Task)(nil)

// NewTask returns the arguments of one run. The engine stops the daemon with the
// stopper. Without a stopper, the daemon is never stopped.
func NewTask(s CallContext, param any, a Attempt, stop *Stopper) *Task {
	if stop == nil {
		stop = NewStopper()
	}
	return &Task{writable: newWritable(s, param), attemptInfo: attemptInfo{a}, stop: stop}
}

// Stopped returns a channel that is closed when the daemon must stop.
//
// Specification: Daemons, "Termination".
func (t *Task) Stopped() <-chan struct{} { return t.stop.Done() }

// StopReason returns why the daemon must stop, or 0 if it does not have to stop.
func (t *Task) StopReason() StopReason { return t.stop.Reason() }

// Wait sleeps until the pause is over or the daemon must return, because it was asked to
// stop or the context of the call is done. It reports whether the daemon must return:
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
		return t.isStopping() // both can happen at the same time
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

// StopReason is the set of reasons why a daemon or a timer must stop. Reasons can be combined and
// added later.
type StopReason uint16

// The reasons, and the progress of the termination.
const (
	StopDeleted        StopReason = 1 << iota // the object is deleted, or marked for it
	StopMismatch                              // the object no longer matches the filters
	StopPaused                                // the operator is paused
	StopExiting                               // the operator exits
	StopSignaled                              // the handler was asked to stop
	StopCanceled                              // its context was canceled
	StopAbandoned                             // the operator no longer waits for it
	StopMisfit                                // the object no longer fits the Go type of the handler
	StopLeadershipLost                        // another replica may lead by now: nothing is written anymore
)

var stopNames = [...]string{"deleted", "mismatch", "paused", "exiting", "signaled", "canceled", "abandoned", "misfit", "leadershipLost"}

// Has reports whether the set contains all of the given reasons.
func (r StopReason) Has(reason StopReason) bool { return r&reason == reason }

// String lists the reasons, such as "deleted|signaled".
func (r StopReason) String() string {
	var names []string
	for i, name := range stopNames {
		if r.Has(1 << i) {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// Stopper is the engine's means to stop a daemon or a timer. Its zero value is ready to use, and
// safe for concurrent use.
type Stopper struct {
	mu     sync.Mutex
	done   chan struct{}
	reason StopReason
}

// NewStopper returns a Stopper for a handler that is about to start.
func NewStopper() *Stopper { return &Stopper{} }

// Stop asks the handler to stop, and adds the reason.
func (s *Stopper) Stop(reason StopReason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason == 0 && reason != 0 {
		close(s.channel())
	}
	s.reason |= reason
}

// Done returns a channel that is closed when the handler is asked to stop.
func (s *Stopper) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channel()
}

// channel creates the channel on first use. The caller must hold the lock.
func (s *Stopper) channel() chan struct{} {
	if s.done == nil {
		s.done = make(chan struct{})
	}
	return s.done
}

// Reason returns the reasons, or 0 if the handler was not asked to stop.
func (s *Stopper) Reason() StopReason {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

package handler

import (
	"strings"
	"sync"
)

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

// Has tells whether all of the given reasons are among these.
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

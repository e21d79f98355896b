package handler

import (
	"sync"

	"github.com/kopf-go/kopf/pkg/model/stop"
)

// Stopper is the engine's means to stop a daemon or a timer. Its zero value is ready to use, and
// safe for concurrent use.
type Stopper struct {
	mu     sync.Mutex
	done   chan struct{}
	reason stop.Reason
}

// NewStopper returns a Stopper for a handler that is about to start.
func NewStopper() *Stopper { return &Stopper{} }

// Stop asks the handler to stop, and adds the reason.
func (s *Stopper) Stop(reason stop.Reason) {
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
func (s *Stopper) Reason() stop.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

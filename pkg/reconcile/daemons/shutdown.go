package daemons

import (
	"context"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// farewell is how long handlers may take to return and to deliver after all
// contexts were cancelled at the end of the grace period: enough to return, not
// enough to begin anything.
const farewell = time.Second

// Stop stops all daemons and timers for good, because the operator exits: each
// daemon by its own stages, all at the same time. It returns when all of them
// have returned or were abandoned. When the context is done, which is the end of
// the grace period, the contexts of all that are left are cancelled, whatever
// their stages say; who has not returned a second later is abandoned with a
// warning.
//
// Specification: Daemons, "Timeouts".
func (s *Supervisor) Stop(ctx context.Context) {
	defer s.giveUp()
	defer s.cancel(errStopped)
	s.close()
	select {
	case <-s.quiet:
		return
	case <-ctx.Done():
	}
	s.force()
	timer := time.NewTimer(farewell)
	defer timer.Stop()
	select {
	case <-s.quiet:
	case <-timer.C:
		s.abandon()
	}
}

// close lets nothing start any more, and asks everybody to stop.
func (s *Supervisor) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.halt(handler.StopExiting)
	s.hush()
}

// force cancels all contexts.
func (s *Supervisor) force() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.workers() {
		w.mark(handler.StopCancelled)
	}
	s.cancel(errStopped)
}

// abandon gives up everybody who is left.
func (s *Supervisor) abandon() {
	left := map[*worker]notice{}
	s.mu.Lock()
	for w := range s.workers() {
		if w.phase == running {
			left[w] = w.abandon()
		}
	}
	s.mu.Unlock()
	for w, n := range left {
		w.group.tell(n)
	}
}

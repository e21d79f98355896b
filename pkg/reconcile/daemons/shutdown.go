package daemons

import (
	"context"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// farewell is how long handlers may take to return and to deliver after all
// contexts were cancelled at the end of the grace period: enough to return, not
// enough to begin anything.
const returnPeriod = time.Second

// Stop stops all daemons and timers for good, because the operator exits: each
// daemon by its own stages, all at the same time. It returns when all of them
// have returned or were abandoned. When the context is done, which is the end of
// the grace period, the contexts of all that are left are cancelled, whatever
// their stages say; who has not returned a second later is abandoned with a
// warning.
//
// Specification: Daemons, "Timeouts".
func (s *Supervisor) Stop(ctx context.Context) {
	defer s.cancelWrites()
	defer s.cancelHandlers(errStopped)
	s.beginShutdown()
	select {
	case <-s.done:
		return
	case <-ctx.Done():
	}
	s.cancelAll()
	timer := time.NewTimer(returnPeriod)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		s.abandonAll()
	}
}

// close lets nothing start any more, and asks everybody to stop.
func (s *Supervisor) beginShutdown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.requestStopAll(handler.StopExiting)
	s.closeIfDone()
}

// force cancels all contexts.
func (s *Supervisor) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.workers() {
		w.setStopReason(handler.StopCancelled)
	}
	s.cancelHandlers(errStopped)
}

// abandon gives up everybody who is left.
func (s *Supervisor) abandonAll() {
	left := map[*worker]warning{}
	s.mu.Lock()
	for w := range s.workers() {
		if w.phase == running {
			left[w] = w.abandon()
		}
	}
	s.mu.Unlock()
	for w, n := range left {
		w.group.emit(n)
	}
}

package daemons

import (
	"context"
	"time"

	"github.com/kopf-go/kopf/pkg/model/stop"
)

// returnPeriod is how long handlers may take to return and to write their edits after
// all contexts were canceled at the end of the grace period: enough to return, but
// not enough to begin anything.
const returnPeriod = time.Second

// Stop stops all daemons and timers for good, because the operator exits: all at the
// same time, each daemon by its own stages. It returns when all of them have returned
// or were abandoned. When the context is done, which is the end of the grace period,
// the contexts of all remaining handlers are canceled, whatever their stages.
// Handlers that have not returned a second later are abandoned with a warning.
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

// Abort cancels all handlers at once, because another replica may already run them. The error
// is the cause of their contexts. It does not wait; call Stop afterwards.
func (s *Supervisor) Abort(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.workers() {
		w.setStopReason(stop.LeadershipLost | stop.Canceled)
	}
	s.cancelHandlers(cause) // before the stages, which would cancel with another cause
	s.close()
}

// beginShutdown lets nothing start anymore, and asks all workers to stop.
func (s *Supervisor) beginShutdown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

// close does the work of beginShutdown. The lock is held.
func (s *Supervisor) close() {
	if s.closed {
		return
	}
	s.closed = true
	s.requestStopAll(stop.Exiting)
	s.closeIfDone()
}

// cancelAll cancels the contexts of all handlers.
func (s *Supervisor) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.workers() {
		w.setStopReason(stop.Canceled)
	}
	s.cancelHandlers(errStopped)
}

// abandonAll abandons all workers that still run.
func (s *Supervisor) abandonAll() {
	warnings := map[*worker]warning{}
	s.mu.Lock()
	for w := range s.workers() {
		if w.phase == running {
			warnings[w] = w.abandon()
		}
	}
	s.mu.Unlock()
	for w, warning := range warnings {
		w.group.emit(warning)
	}
}

package daemons

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

// errStopped is the cause of the cancellation of a handler's context.
var errStopped = errors.New("the handler must stop")

// Supervisor runs the daemons and timers of one operator. It is safe for concurrent
// use, and has no goroutine. Call Stop in the end.
type Supervisor struct {
	options Options
	started time.Time // timers fire together at multiples of some time since then
	// handlerCtx is the context of all handlers, writeCtx of all writes.
	handlerCtx, writeCtx context.Context
	cancelHandlers       context.CancelCauseFunc // cancels handlerCtx
	cancelWrites         context.CancelFunc      // cancels writeCtx

	mu       sync.Mutex
	groups   map[*Group]struct{} // those with anything to stop
	stopping map[Identity]*Group // those that are closed, and still have something to stop
	awaited  int                 // the number of workers that run and are not abandoned
	limits   map[limitKey]*limitLine
	daemons  phaseCounts
	timers   phaseCounts
	paused   bool
	closed   bool
	returned chan struct{} // closed when awaited is zero; nil if not waited for
	done     chan struct{} // closed when the supervisor is closed and awaited is zero
}

// New returns a Supervisor.
func New(options Options) *Supervisor {
	s := &Supervisor{options: options.withDefaults(), started: time.Now(), groups: map[*Group]struct{}{}, stopping: map[Identity]*Group{}, limits: map[limitKey]*limitLine{}, done: make(chan struct{})}
	s.Begin(context.Background())
	return s
}

// Begin passes the values of the context on to the handlers, but not its end: Stop ends
// them. It must be called before the first handler starts.
func (s *Supervisor) Begin(ctx context.Context) {
	values := context.WithoutCancel(ctx)
	s.handlerCtx, s.cancelHandlers = context.WithCancelCause(values)
	s.writeCtx, s.cancelWrites = context.WithCancel(values)
}

// Pause stops all daemons and timers, in the same way as if they did not match any
// more. Nothing starts until Resume. Pause does not wait.
func (s *Supervisor) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = true
	s.requestStopAll(stop.Paused)
}

// Wait returns when all running handlers have returned or were abandoned, or when the
// context is done.
func (s *Supervisor) Wait(ctx context.Context) {
	s.mu.Lock()
	if s.awaited == 0 {
		s.mu.Unlock()
		return
	}
	if s.returned == nil {
		s.returned = make(chan struct{})
	}
	idle := s.returned
	s.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// Resume allows handlers to start again. They start with the next Sync of their group,
// which the caller must arrange.
func (s *Supervisor) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = false
}

// canStart reports whether a handler may start. The lock is held.
func (s *Supervisor) canStart() bool { return !s.paused && !s.closed }

// requestStopAll requests all workers to stop. The lock is held.
func (s *Supervisor) requestStopAll(reason stop.Reason) {
	for w := range s.workers() {
		w.requestStop(reason)
	}
}

// workers returns the workers of all groups. The lock is held.
func (s *Supervisor) workers() iter.Seq[*worker] {
	return func(yield func(*worker) bool) {
		for g := range s.groups {
			for _, w := range g.workers {
				if !yield(w) {
					return
				}
			}
		}
	}
}

// decrementAwaited stops waiting for one worker. The lock is held.
func (s *Supervisor) decrementAwaited() {
	s.awaited--
	if s.awaited == 0 && s.returned != nil {
		close(s.returned)
		s.returned = nil
	}
	s.closeIfDone()
}

// closeIfDone signals the end of the shutdown when no worker is left to wait for. The
// lock is held.
func (s *Supervisor) closeIfDone() {
	if s.closed && s.awaited == 0 {
		close(s.done)
	}
}

// delayAfter returns the delay after a failed attempt of the handler, which follows this
// many earlier ones.
func (s *Supervisor) delayAfter(d *handler.Declaration, retry int) time.Duration {
	return d.Backoff.Or(s.options.Backoff).Delay(retry)
}

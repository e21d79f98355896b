package daemons

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// errStopped is why the context of a handler was cancelled.
var errStopped = errors.New("the handler is to stop")

// Supervisor runs the daemons and timers of one operator. It is safe for
// concurrent use, and has no goroutine of its own. Whoever makes one has to stop
// it in the end.
type Supervisor struct {
	options Options
	started time.Time // alarms ring together at multiples of some time since then
	// working is the context of all handlers, delivering that of all writes.
	handlerCtx, writeCtx context.Context
	cancelHandlers       context.CancelCauseFunc // of working
	cancelWrites         context.CancelFunc      // of delivering

	mu       sync.Mutex
	groups   map[*Group]struct{} // those with anything to stop
	awaited  int                 // how many workers run and are not abandoned
	daemons  phaseCounts
	timers   phaseCounts
	paused   bool
	closed   bool
	returned chan struct{} // closed when nobody is awaited; nil: nobody wants to know
	done     chan struct{} // closed when the supervisor is, and nobody is awaited
}

// New makes a supervisor.
func New(options Options) *Supervisor {
	s := &Supervisor{options: options.withDefaults(), started: time.Now(), groups: map[*Group]struct{}{}, done: make(chan struct{})}
	s.handlerCtx, s.cancelHandlers = context.WithCancelCause(context.Background())
	s.writeCtx, s.cancelWrites = context.WithCancel(context.Background())
	return s
}

// NewGroup makes the group of one object. It costs next to nothing until something
// matches; then it must be stopped when the object goes.
func (s *Supervisor) NewGroup(h Host) *Group { return &Group{supervisor: s, host: h} }

// Pause stops all daemons and timers, as they stop when they match no longer.
// Nothing starts until Resume. It does not wait for them.
func (s *Supervisor) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = true
	s.requestStopAll(handler.StopPaused)
}

// Wait waits until all that run have returned or were abandoned, or the context is
// done.
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

// Resume allows again to start what matches. The next Match of every group does;
// the caller has to see to it that there is one.
func (s *Supervisor) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = false
}

// open tells whether anything may start. The lock is held.
func (s *Supervisor) canStart() bool { return !s.paused && !s.closed }

func (s *Supervisor) requestStopAll(reason handler.StopReason) {
	for w := range s.workers() {
		w.requestStop(reason)
	}
}

// workers are those of all groups. The lock is held.
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

// release stops to wait for one worker. The lock is held.
func (s *Supervisor) decrementAwaited() {
	s.awaited--
	if s.awaited == 0 && s.returned != nil {
		close(s.returned)
		s.returned = nil
	}
	s.closeIfDone()
}

// hush says so when there is nobody left to wait for. The lock is held.
func (s *Supervisor) closeIfDone() {
	if s.closed && s.awaited == 0 {
		close(s.done)
	}
}

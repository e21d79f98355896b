package daemons

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/settings"
)

// errStopped is the cause of the cancellation of a handler's context.
var errStopped = errors.New("the handler must stop")

// Options configure a Supervisor.
type Options struct {
	// Backoff is the delay after a regular error of a handler that declares none. The
	// default is settings.DefaultBackoff.
	Backoff backoff.Backoff
	// CancellationPolling is the interval between two warnings about a daemon that
	// does not stop, if the daemon declares none. The default is
	// settings.DefaultCancellationPolling.
	CancellationPolling time.Duration
}

// Counts are the numbers of handlers of one kind by what they are doing, over all
// objects.
type Counts struct {
	Waiting   int // for their next call, or for a change of their object
	Running   int // and waited for when they must stop
	Abandoned int // running, but no longer waited for
}

// phaseCounts are the numbers of workers of one kind by their phase.
type phaseCounts [ended + 1]int

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
	options.Backoff = options.Backoff.Or(backoff.Constant(settings.DefaultBackoff))
	if options.CancellationPolling == 0 {
		options.CancellationPolling = settings.DefaultCancellationPolling
	}
	s := &Supervisor{
		options: options, started: time.Now(),
		groups: map[*Group]struct{}{}, stopping: map[Identity]*Group{}, limits: map[limitKey]*limitLine{}, done: make(chan struct{}),
	}
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
	s.mu.Lock()
	s.close()
	s.mu.Unlock()
	select {
	case <-s.done:
		return
	case <-ctx.Done():
	}

	s.mu.Lock()
	for w := range s.workers() {
		w.setStopReason(stop.Canceled)
	}
	s.cancelHandlers(errStopped)
	s.mu.Unlock()
	timer := time.NewTimer(returnPeriod)
	defer timer.Stop()
	select {
	case <-s.done:
		return
	case <-timer.C:
	}

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

// close lets nothing start anymore, and asks all workers to stop. The lock is held.
func (s *Supervisor) close() {
	if s.closed {
		return
	}
	s.closed = true
	s.requestStopAll(stop.Exiting)
	s.closeIfDone()
}

// Count returns the counts of daemons or timers. It takes constant time.
func (s *Supervisor) Count(kind handler.Kind) Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.countsOf(kind)
	return Counts{Waiting: t[waiting], Running: t[running], Abandoned: t[abandoned]}
}

// countsOf returns the counts of a kind. The lock is held.
func (s *Supervisor) countsOf(kind handler.Kind) *phaseCounts {
	if kind == handler.OnDaemon {
		return &s.daemons
	}
	return &s.timers
}

// Doing is the current state of a daemon or a timer: waiting, running, abandoned, or ended.
type Doing struct {
	Handler *handler.Declaration
	What    string
}

// phases names the phases for people.
var phases = map[phase]string{waiting: "waiting", running: "running", abandoned: "abandoned", ended: "ended"}

// Of returns what the handlers of the objects are doing that the function selects. It examines all
// objects.
func (s *Supervisor) Of(selects func(Host) bool) (all []Doing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.workers() {
		if what, known := phases[w.phase]; known && selects(w.group.host) {
			all = append(all, Doing{w.handler, what})
		}
	}
	return all
}

// IsStopping reports whether handlers of an object still run that seemed to be gone.
func (s *Supervisor) IsStopping(object Identity) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping[object] != nil
}

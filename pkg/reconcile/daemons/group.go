package daemons

import (
	"slices"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

// Group runs the daemons and timers of one object. Sync and Stop must not be called
// concurrently: both belong to the pass over the object.
type Group struct {
	supervisor *Supervisor

	// The supervisor's lock guards the rest.
	host        Host
	workers     []*worker
	lastChange  time.Time // of the object; zero if it was not seen yet
	changeCount uint32    // of the object
	deleting    bool      // only handlers of Deleted start
	closed      bool      // no handler starts
}

// NewGroup returns the group of one object. It costs next to nothing until a handler
// matches; from then on, it must be stopped when the object is gone.
//
// An object can return after it seemed to be gone: when it leaves what the operator watches,
// and comes back. It gets the same group again while its earlier handlers are stopping.
func (s *Supervisor) NewGroup(h Host) *Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.stopping[h.Identity()]
	if g == nil {
		return &Group{supervisor: s, host: h}
	}
	delete(s.stopping, h.Identity())
	g.host = h
	g.closed = false
	g.deleting = false
	g.lastChange = time.Time{}
	g.workers = slices.DeleteFunc(g.workers, func(w *worker) bool { return !w.isActive() })
	return g
}

// currentHost returns the host. The lock is not held.
func (g *Group) currentHost() Host {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	return g.host
}

// Sync starts the handlers that match the object now, and stops all others: those that do
// not match anymore, and the misfits, whose Go type the object does not fit. The flag says whether the essence of the object has changed since
// the last call; the first call counts as a change, and a change postpones timers that
// wait for the object to be idle.
//
// Handlers that have ended by themselves or failed permanently do not start again.
// Handlers that are still stopping start when they have returned: the Host is asked
// for another pass then.
//
// Specification: Daemons, "Filtering"; Timers, "Idling".
func (g *Group) Sync(wanted []*handler.Declaration, changed bool, misfits ...*handler.Declaration) {
	g.prepareWorkers(wanted)
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	if g.closed {
		return
	}
	if changed || g.lastChange.IsZero() {
		g.lastChange = time.Now()
		g.changeCount++
		for _, w := range g.workers {
			if w.phase == waiting && w.handler.Idle > 0 {
				w.returnSlot()
				w.startTimer(latest(w.due, g.lastChange.Add(w.handler.Idle)))
			}
		}
	}
	for _, w := range g.workers {
		switch i := slices.IndexFunc(wanted, w.isFor); {
		case i < 0 && g.deleting && !w.handler.Deleted: // it was asked to stop
		case i < 0 && slices.ContainsFunc(misfits, w.isFor):
			w.requestStop(stop.Misfit)
		case i < 0:
			w.requestStop(stop.Mismatch)
		case g.supervisor.canStart():
			w.ensureStarted(wanted[i])
		}
	}
}

// prepareWorkers begins the initial delays of the handlers that are about to start, and
// adds the workers of those that match for the first time. It also plans the runs of schedules. It does not
// hold the lock while it calls user code.
func (g *Group) prepareWorkers(wanted []*handler.Declaration) {
	for _, d := range wanted {
		isStarting := g.isStarting(d)
		notBefore := time.Time{}
		if isStarting && d.Schedule == nil {
			notBefore = time.Now().Add(g.initialDelay(d))
		}
		if isStarting {
			g.prepareStart(d, notBefore)
		}
		if d.Schedule != nil && (isStarting || d.Schedule.Of != nil) {
			g.lookInPass(d, isStarting)
		}
	}
}

// prepareStart adds the worker of a handler that matches for the first time, and sets the end of its initial delay.
func (g *Group) prepareStart(d *handler.Declaration, notBefore time.Time) {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	w := g.workerOf(d)
	if w == nil {
		w = &worker{group: g, handler: d}
		g.workers = append(g.workers, w)
		g.supervisor.groups[g] = struct{}{}
	}
	if w.scheduled == nil && d.Schedule != nil {
		w.scheduled = &scheduled{}
	}
	w.notBefore = notBefore
}

// isStarting reports whether Sync starts the handler: it is off, or it waits as another
// declaration.
func (g *Group) isStarting(d *handler.Declaration) bool {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	if g.closed || !g.supervisor.canStart() {
		return false
	}
	w := g.workerOf(d)
	return w == nil || w.phase == off || w.phase == waiting && w.handler != d
}

// initialDelay calls the function that declares the initial delay. If it panics, the
// handler waits as after any other error.
func (g *Group) initialDelay(d *handler.Declaration) time.Duration {
	if d.InitialDelay == nil {
		return 0
	}
	var delay time.Duration
	host := g.currentHost()
	ctx, call := host.Prepare(g.supervisor.handlerCtx, d)
	call.Patch = &patch.Patch{}
	err := handler.WithRecover(func() error {
		delay = d.InitialDelay(handler.NewCall(d, call, handler.Attempt{}))
		return nil
	})
	if err != nil {
		delay = g.supervisor.delayAfter(d, 0)
		host.Report(ctx, d, failedOutcome(err, delay))
	}
	return max(0, delay)
}

// BeginDeletion stops all handlers for good, because the object is being deleted, except daemons of Deleted: Sync still
// starts and stops these. It does not wait, and may be called again.
func (g *Group) BeginDeletion() {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	g.deleting = true
	for _, w := range g.workers {
		if !w.handler.Deleted {
			w.requestStop(stop.Deleted)
		}
	}
}

// Stop stops all handlers for good, because the object is being deleted or is gone. It
// does not wait; HasRunningDaemons reports whether there is anything to wait for. It
// may be called again, with other reasons.
func (g *Group) Stop(reason stop.Reason) {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	g.closed = true
	for _, w := range g.workers {
		w.requestStop(reason)
	}
	g.forgetIfStopped()
}

// Suspend stops all handlers for now, as in a pause. They start with the next Sync.
func (g *Group) Suspend() {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	for _, w := range g.workers {
		w.requestStop(stop.Paused)
	}
}

// forgetIfStopped makes the supervisor forget a group that has nothing to stop and
// will start nothing, unless its object returns before that. The lock is held.
func (g *Group) forgetIfStopped() {
	switch {
	case !g.closed:
	case slices.ContainsFunc(g.workers, (*worker).isActive):
		g.supervisor.stopping[g.host.Identity()] = g
	default:
		delete(g.supervisor.groups, g)
		delete(g.supervisor.stopping, g.host.Identity())
	}
}

// Cancel stops all handlers for good, and cancels the contexts of those that are running.
func (g *Group) Cancel(cause error, reason stop.Reason) {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	g.closed = true
	for _, w := range g.workers {
		if w.phase == running {
			w.setStopReason(reason | stop.Canceled)
			w.cancel(cause) // before the stages, which would cancel with another cause
		}
		w.requestStop(reason)
	}
	g.forgetIfStopped()
}

// IsActive reports whether a handler has not returned, or waits for its next call. Abandoned handlers count.
func (g *Group) IsActive() bool {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	return slices.ContainsFunc(g.workers, (*worker).isActive)
}

// HasRunningDaemons reports whether a daemon is running. Timers, abandoned daemons, and daemons that wait for their
// next attempt do not count.
func (g *Group) HasRunningDaemons() bool {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	return slices.ContainsFunc(g.workers, func(w *worker) bool { return w.isDaemon() && w.phase == running })
}

// HoldsObject reports whether a daemon is running that must return before the object may be released: those of
// HasRunningDaemons, but for those of Deleted.
//
// Specification: Daemons, "Deletion prevention".
func (g *Group) HoldsObject() bool {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	return slices.ContainsFunc(g.workers, func(w *worker) bool { return w.isDaemon() && !w.handler.Deleted && w.phase == running })
}

// NeedsFinalizer reports whether a handler that matches needs the finalizer on the
// object, because it is a daemon that runs or is about to run.
func (g *Group) NeedsFinalizer(d *handler.Declaration) bool {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	if d.Kind != handler.OnDaemon || d.Deleted || g.closed {
		return false
	}
	w := g.workerOf(d)
	return w == nil || w.phase != ended
}

// workerOf returns the worker of a handler, or nil if there is none. The lock is held.
func (g *Group) workerOf(d *handler.Declaration) *worker {
	for _, w := range g.workers {
		if w.isFor(d) {
			return w
		}
	}
	return nil
}

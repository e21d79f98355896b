package daemons

import (
	"slices"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

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

// IsStopping reports whether handlers of an object still run that seemed to be gone.
func (s *Supervisor) IsStopping(object Identity) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping[object] != nil
}

// HasRunningDaemons reports whether a daemon is running that must return before the
// object may be released. Timers, abandoned daemons, and daemons that wait for their
// next attempt do not count.
//
// Specification: Daemons, "Deletion prevention".
func (g *Group) HasRunningDaemons() bool {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	return slices.ContainsFunc(g.workers, func(w *worker) bool { return w.isDaemon() && w.phase == running })
}

// NeedsFinalizer reports whether a handler that matches needs the finalizer on the
// object, because it is a daemon that runs or is about to run.
func (g *Group) NeedsFinalizer(d *handler.Declaration) bool {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	if d.Kind != handler.OnDaemon || g.closed {
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

package daemons

import (
	"slices"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// Stop stops everything for good: the object is being deleted, or is gone. It
// does not wait; Holds tells whether there is anything to wait for. It may be
// called again, with other reasons.
func (g *Group) Stop(reason handler.StopReason) {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	g.closed = true
	for _, w := range g.workers {
		w.requestStop(reason)
	}
	g.forgetIfStopped()
}

// leave makes the supervisor forget a group that has nothing to stop and never
// will. The lock is held.
func (g *Group) forgetIfStopped() {
	if g.closed && !slices.ContainsFunc(g.workers, (*worker).isActive) {
		delete(g.supervisor.groups, g)
	}
}

// HasRunningDaemons tells whether a daemon is running whose end must be awaited. Timers,
// abandoned daemons, and daemons that wait for their next attempt do not hold an
// object.
//
// Specification: Daemons, "Deletion prevention".
func (g *Group) HasRunningDaemons() bool {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	return slices.ContainsFunc(g.workers, func(w *worker) bool { return w.isDaemon() && w.phase == running })
}

// NeedsFinalizer tells whether a handler that matches needs the finalizer on the object:
// whether it is a daemon that runs or is to run.
func (g *Group) NeedsFinalizer(d *handler.Declaration) bool {
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	if d.Kind != handler.OnDaemon || g.closed {
		return false
	}
	w := g.workerOf(d)
	return w == nil || w.phase != ended
}

// find is the worker of a handler; nil if there is none. The lock is held.
func (g *Group) workerOf(d *handler.Declaration) *worker {
	for _, w := range g.workers {
		if w.isFor(d) {
			return w
		}
	}
	return nil
}

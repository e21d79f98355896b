package daemons

import "github.com/kopf-go/kopf/internal/handler"

// Counts are the numbers of handlers of one kind by what they are doing, over all
// objects.
type Counts struct {
	Waiting   int // for their next call, or for a change of their object
	Running   int // and waited for when they must stop
	Abandoned int // running, but no longer waited for
}

// phaseCounts are the numbers of workers of one kind by their phase.
type phaseCounts [ended + 1]int

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

// setPhase changes the phase of the worker, and the counts. A worker that does not run has no
// slot. The lock is held.
func (w *worker) setPhase(next phase) {
	if next != running && next != abandoned {
		w.returnSlot()
	}
	t := w.group.supervisor.countsOf(w.handler.Kind)
	t[w.phase]--
	t[next]++
	w.phase = next
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

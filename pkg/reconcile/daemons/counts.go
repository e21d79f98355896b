package daemons

import "github.com/kopf-go/kopf/pkg/model/handler"

// Counts is how many handlers of a kind are in which phase, over all objects.
type Counts struct {
	Waiting   int // for their next call, or for a change of their object
	Running   int
	Abandoned int // they run, and nobody waits for them
}

// tally counts the workers of one kind by their phase.
type phaseCounts [ended + 1]int

// Counts tells how many daemons or timers there are. It costs the same for however
// many.
func (s *Supervisor) Count(kind handler.Kind) Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.countsOf(kind)
	return Counts{Waiting: t[waiting], Running: t[running], Abandoned: t[abandoned]}
}

// tally is that of a kind. The lock is held.
func (s *Supervisor) countsOf(kind handler.Kind) *phaseCounts {
	if kind == handler.OnDaemon {
		return &s.daemons
	}
	return &s.timers
}

// enter changes the phase of the worker. The lock is held.
func (w *worker) setPhase(next phase) {
	t := w.group.supervisor.countsOf(w.handler.Kind)
	t[w.phase]--
	t[next]++
	w.phase = next
}

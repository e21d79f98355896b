package daemons

import (
	"time"

	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// schedule decides when the handler is called next, if ever. The lock is held.
func (w *worker) scheduleNext(o execution.Outcome) {
	at, again := w.nextCall(o, time.Now())
	if !again {
		w.setPhase(ended)
		return
	}
	w.setPhase(waiting)
	if !at.IsZero() {
		w.startTimer(at)
	}
}

// next is the time of the next call; zero if it depends on the next change of
// the object. An error's delay overrides everything but the idle time.
//
// Specification: Daemons, "Restarting"; Timers.
func (w *worker) nextCall(o execution.Outcome, now time.Time) (at time.Time, again bool) {
	switch d := w.handler; {
	case !o.Final:
		at = now.Add(o.Delay)
	case w.isDaemon() || o.Err != nil:
		return at, false
	case d.Interval > 0 && d.Sharp:
		// The grid is that of the time when the call was due: the small delays of
		// the calls do not add up.
		at = now.Add(d.Interval - now.Sub(w.lastDue)%d.Interval)
	case d.Interval > 0:
		at = now.Add(d.Interval)
	case d.Idle > 0:
		if w.seenChanges == w.group.changeCount {
			return at, true
		}
	default:
		return at, false // it was to be called once
	}
	return latest(at, w.idleSince()), true
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

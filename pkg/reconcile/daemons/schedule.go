package daemons

import (
	"errors"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// next is when a timer is called next, as far as code of users decides that.
type next struct {
	interval time.Duration // of an IntervalFunc; zero if it is unknown
	run      time.Time     // of a schedule; zero if it is unknown
	schedule string        // of the run
	look     time.Time     // when to look again for what is unknown; zero to wait for a change of the object
}

// nextCall returns the time of the next call, or zero if that depends on the next
// change of the object. It reports false if there is no next call. The delay of an
// error overrides everything but the idle time.
//
// Specification: Daemons, "Restarting"; Timers.
func (w *worker) nextCall(o call.Outcome, n *next, now time.Time) (at time.Time, again bool) {
	interval := w.handler.Interval
	if w.handler.IntervalFunc != nil {
		interval = n.interval
	}
	switch d := w.handler; {
	case !o.Final:
		at = now.Add(o.Delay)
	case d.Schedule != nil: // an error ends the run, and not the schedule
		return w.plan(*n), true
	case w.isDaemon() || o.Err != nil && !isLimitError(o.Err):
		return at, false
	case d.IntervalFunc != nil && interval == 0:
		at = n.look
	case interval > 0 && d.Sharp:
		// The grid begins when the call was due, so that small delays of calls do
		// not add up.
		at = now.Add(interval - now.Sub(w.plannedFor)%interval)
	case interval > 0:
		at = now.Add(interval)
	case d.Idle > 0:
		if w.seenChanges == w.group.changeCount {
			return at, true
		}
	default:
		return at, false // a single call was requested
	}
	return latest(at, w.idleFrom()), true
}

// isLimitError reports whether a handler has used up its retries or its time. A timer
// starts again at its next interval then: an outage must not end it for good.
func isLimitError(err error) bool {
	var timeout *handler.TimeoutError
	var retries *handler.RetriesError
	return errors.As(err, &timeout) || errors.As(err, &retries)
}

// idleFrom returns the time from which the object counts as idle for this handler.
func (w *worker) idleFrom() time.Time { return w.group.lastChange.Add(w.handler.Idle) }

// startTimer sets the time when the worker is due. The timer fires slightly later than
// it could, together with others: waking an idle processor for each timer costs ten
// times as much as a call. The lock is held.
func (w *worker) startTimer(at time.Time) {
	w.due = at
	delay := time.Until(at)
	delay += w.group.supervisor.coalesce(at, delay)
	if w.timer == nil {
		w.timer = time.AfterFunc(delay, w.onTimer)
		return
	}
	w.timer.Reset(delay)
}

// coalesce returns by how much a timer is postponed to fire with others: by a
// hundredth of its delay at most, and never noticeably.
func (s *Supervisor) coalesce(at time.Time, delay time.Duration) time.Duration {
	slack := 10 * time.Millisecond
	switch {
	case delay < 100*time.Millisecond:
		return 0
	case delay < time.Second:
		slack = time.Millisecond
	}
	if over := at.Sub(s.started) % slack; over > 0 {
		return slack - over
	}
	return 0
}

// stopTimer makes nothing due. The lock is held.
func (w *worker) stopTimer() {
	w.due = time.Time{}
	if w.timer != nil {
		w.timer.Stop()
	}
}

// latest returns the later one of two times.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

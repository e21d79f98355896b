package peering

import "time"

// deadlineTimer is a timer that knows for when it is set.
type deadlineTimer struct {
	*time.Timer
	deadline time.Time // zero: it is not set
}

func newDeadlineTimer() deadlineTimer {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return deadlineTimer{Timer: timer}
}

// set sets the alarm, also for a time that is over; the zero time cancels it.
func (a *deadlineTimer) set(at time.Time) {
	if a.deadline = at; at.IsZero() {
		a.Stop()
		return
	}
	a.Reset(time.Until(at))
}

// setEarlier sets the alarm unless it is set for an earlier time.
func (a *deadlineTimer) setEarlier(at time.Time) {
	if a.deadline.IsZero() || at.Before(a.deadline) {
		a.set(at)
	}
}

func (a *deadlineTimer) cancel() { a.set(time.Time{}) }

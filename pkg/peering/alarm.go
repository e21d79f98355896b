package peering

import "time"

// alarm is a timer that knows for when it is set.
type alarm struct {
	*time.Timer
	at time.Time // zero: it is not set
}

func newAlarm() alarm {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return alarm{Timer: timer}
}

// set sets the alarm, also for a time that is over; the zero time cancels it.
func (a *alarm) set(at time.Time) {
	if a.at = at; at.IsZero() {
		a.Stop()
		return
	}
	a.Reset(time.Until(at))
}

// advance sets the alarm unless it is set for an earlier time.
func (a *alarm) advance(at time.Time) {
	if a.at.IsZero() || at.Before(a.at) {
		a.set(at)
	}
}

func (a *alarm) cancel() { a.set(time.Time{}) }

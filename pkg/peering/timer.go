package peering

import "time"

// deadlineTimer is a timer that knows its deadline.
type deadlineTimer struct {
	*time.Timer
	deadline time.Time // zero: the timer is not set
}

func newDeadlineTimer() deadlineTimer {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return deadlineTimer{Timer: timer}
}

// set sets the timer, which fires at once if the deadline is over. The zero time
// cancels it.
func (t *deadlineTimer) set(deadline time.Time) {
	t.deadline = deadline
	if deadline.IsZero() {
		t.Stop()
		return
	}
	t.Reset(time.Until(deadline))
}

func (t *deadlineTimer) cancel() { t.set(time.Time{}) }

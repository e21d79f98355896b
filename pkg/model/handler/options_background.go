package handler

import (
	"errors"
	"time"
)

// InitialDelay delays the first call each time the daemon or timer starts: when the object
// is created, when the operator starts, and when the object matches the filters again. The
// default is 0.
//
// Specification: Daemons, "Postponing"; Timers, "Postponing".
func InitialDelay(delay time.Duration) BackgroundOption {
	return func(d *Declaration) {
		validateDuration(d, "initial delay", delay)
		d.InitialDelay = func(Arguments) time.Duration { return delay }
	}
}

// InitialDelayFunc is InitialDelay with a delay that depends on the object, such
// as a random one against all of them at once. What it returns below zero is zero.
func InitialDelayFunc(delay func(Arguments) time.Duration) BackgroundOption {
	return func(d *Declaration) {
		if delay == nil {
			d.addProblem(errors.New("InitialDelayFunc has no function"))
		}
		d.InitialDelay = delay
	}
}

// Interval is the time between two calls of a timer: from the end of one to the
// start of the next, unless the timer is Sharp. Without an interval the timer is
// called once after each Idle time, or, without that, only once.
//
// Specification: Timers, "Intervals".
func Interval(interval time.Duration) ScheduleOption {
	return func(d *Declaration) {
		if interval == 0 {
			d.addProblem(errors.New("the interval is 0, which would call the timer without a pause: leave it out for a timer without an interval"))
		}
		d.Interval = interval
	}
}

// Sharp measures the interval from start to start, however long the calls take. A
// call that takes longer than the interval skips what it has missed.
//
// Specification: Timers, "Sharpness".
func Sharp() ScheduleOption { return func(d *Declaration) { d.Sharp = true } }

// Idle calls the timer only when the object has not changed for that time. Its
// creation and the start of the operator are changes; status and bookkeeping are
// none.
//
// Specification: Timers, "Idling".
func Idle(idle time.Duration) ScheduleOption { return func(d *Declaration) { d.Idle = idle } }

// CancellationBackoff is how long a daemon may take to stop by itself before its
// context is cancelled. It has an effect only with CancellationTimeout. The
// default, 0, cancels at once.
//
// Specification: Daemons, "Timeouts".
func CancellationBackoff(backoff time.Duration) StoppingOption {
	return func(d *Declaration) { d.CancellationBackoff = backoff }
}

// CancellationTimeout is how long a daemon may take to stop after its context was
// cancelled. When it is over, the daemon is abandoned and its object is let go.
// Without it the context is cancelled only when the operator cannot wait any
// longer, and the object is held until the daemon returns.
//
// Specification: Daemons, "Timeouts".
func CancellationTimeout(timeout time.Duration) StoppingOption {
	return func(d *Declaration) { d.CancellationTimeout = &timeout }
}

// CancellationPolling is how often a warning says that a daemon does not stop;
// the default is the setting Background.CancellationPolling.
//
// Specification: Daemons, "Timeouts".
func CancellationPolling(pause time.Duration) StoppingOption {
	return func(d *Declaration) { d.CancellationPolling = pause }
}

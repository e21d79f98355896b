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

// InitialDelayFunc is like InitialDelay, but the delay can depend on the object. For
// example, use a random delay to avoid calling all handlers at once. Negative delays
// count as zero.
func InitialDelayFunc(delay func(Arguments) time.Duration) BackgroundOption {
	return func(d *Declaration) {
		if delay == nil {
			d.addProblem(errors.New("the function of InitialDelayFunc is nil"))
		}
		d.InitialDelay = delay
	}
}

// Interval sets the time between two calls of a timer: from the end of one call to the
// start of the next, unless the timer is Sharp. A timer without an interval is called
// once after each Idle time or, without Idle, only once.
//
// Specification: Timers, "Intervals".
func Interval(interval time.Duration) ScheduleOption {
	return func(d *Declaration) {
		if interval == 0 {
			d.addProblem(errors.New("the interval is 0, which would call the timer without a delay: leave it out for a timer without an interval"))
		}
		d.Interval = interval
	}
}

// Sharp measures the interval from start to start, regardless of the duration of the
// calls. A call that takes longer than the interval skips the missed ones.
//
// Specification: Timers, "Sharpness".
func Sharp() ScheduleOption { return func(d *Declaration) { d.Sharp = true } }

// Idle calls the timer only if the object has not changed for this time. The object's
// creation and the start of the operator count as changes; changes of the status and of
// the operator's own records do not.
//
// Specification: Timers, "Idling".
func Idle(idle time.Duration) ScheduleOption { return func(d *Declaration) { d.Idle = idle } }

// CancellationBackoff is how long a daemon may take to stop by itself before its context
// is canceled. It has an effect only with CancellationTimeout. The default is 0, which
// cancels the context immediately.
//
// Specification: Daemons, "Timeouts".
func CancellationBackoff(backoff time.Duration) StoppingOption {
	return func(d *Declaration) { d.CancellationBackoff = backoff }
}

// CancellationTimeout is how long a daemon may take to stop after its context is
// canceled. Then the daemon is abandoned, and its object is released. Without this
// option, the context is canceled only when the operator cannot wait any longer, and the
// object is held until the daemon returns.
//
// Specification: Daemons, "Timeouts".
func CancellationTimeout(timeout time.Duration) StoppingOption {
	return func(d *Declaration) { d.CancellationTimeout = &timeout }
}

// CancellationPolling is the interval of the warnings about a daemon that does not stop.
// The default is the setting Background.CancellationPolling.
//
// Specification: Daemons, "Timeouts".
func CancellationPolling(pause time.Duration) StoppingOption {
	return func(d *Declaration) { d.CancellationPolling = pause }
}

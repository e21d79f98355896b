// Package backoff computes how long to wait after a failed attempt: always the same
// time, or longer after each attempt.
//
//	options.Settings.Execution.Backoff = backoff.Exponential(time.Second, 10*time.Minute)
//
// All functions and methods are safe for concurrent use.
package backoff

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// jitterPart is the part of a growing pause that chance can take away: a fifth.
const jitterPart = 5

// Backoff is the rule for the pauses between attempts. The zero value is no rule: it
// stands for the default of the place where it is used. Values can be compared and
// copied.
type Backoff struct {
	kind           kind
	first, longest time.Duration
}

type kind uint8

const (
	unset kind = iota
	constant
	exponential
)

// Constant returns a Backoff with the same pause after every attempt. Zero is no pause:
// the next attempt follows at once. A negative pause is a mistake, see Validate.
func Constant(pause time.Duration) Backoff {
	return Backoff{kind: constant, first: pause, longest: pause}
}

// Exponential returns a Backoff whose pause doubles after every attempt, from the first
// pause up to the longest. Each pause is shortened by up to a fifth, by chance, so that
// handlers that fail together are not called together again. The first pause must be
// positive, and the longest must not be shorter, see Validate.
func Exponential(first, longest time.Duration) Backoff {
	return Backoff{kind: exponential, first: first, longest: longest}
}

// IsZero reports whether the Backoff is the zero value, which stands for a default.
// Constant(0) is not.
func (b Backoff) IsZero() bool { return b == Backoff{} }

// Or returns the Backoff, or the other one if this is the zero value.
func (b Backoff) Or(other Backoff) Backoff {
	if b.IsZero() {
		return other
	}
	return b
}

// Delay returns the pause after an attempt: 0 is the first attempt, 1 the second. It
// depends on chance unless the Backoff is constant. The pause of the zero value is zero,
// and so is a negative one.
func (b Backoff) Delay(attempt int) time.Duration {
	return b.delay(attempt, rand.Int64N)
}

// delay is Delay with a source of random numbers from 0 to below n.
func (b Backoff) delay(attempt int, random func(n int64) int64) time.Duration {
	pause := max(0, min(b.first, b.longest))
	if b.kind != exponential {
		return pause
	}
	for ; attempt > 0 && 0 < pause && pause < b.longest; attempt-- {
		if pause > b.longest/2 { // also against an overflow
			pause = b.longest
			break
		}
		pause *= 2
	}
	jitter := time.Duration(random(int64(pause/jitterPart) + 1))
	return pause - jitter.Truncate(time.Millisecond) // less is of no use, and hard to read
}

// Validate returns an error if a pause is negative, or if a growing one cannot grow.
func (b Backoff) Validate() error {
	switch {
	case b.kind == constant && b.first < 0:
		return fmt.Errorf("the backoff %s is negative", b.first)
	case b.kind == exponential && b.first <= 0:
		return fmt.Errorf("the first pause of the exponential backoff must be positive, not %s", b.first)
	case b.kind == exponential && b.longest < b.first:
		return fmt.Errorf("the longest pause of the exponential backoff, %s, is shorter than its first pause, %s", b.longest, b.first)
	}
	return nil
}

// String returns the pause of a constant Backoff, "1m0s", or the first and the longest
// pause of an exponential one, "1s to 10m0s".
func (b Backoff) String() string {
	switch b.kind {
	case constant:
		return b.first.String()
	case exponential:
		return b.first.String() + " to " + b.longest.String()
	default:
		return "default"
	}
}

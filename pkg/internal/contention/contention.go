// Package contention decides how an operator yields to a rival: another client that undoes again
// and again what the operator writes.
//
// The operator undoes the changes of the rival in turn, because losing nothing matters most. A
// Rule says how many of them it undoes at once, and how long it waits after each one that
// follows. The wait only delays; no change is lost. When the rival has been quiet for long
// enough, the contention is over, and the next change is the first one again.
//
// The users of this package differ in how they see a rival, and in what they say about it:
//
//   - The writer (pkg/reconcile/internal/write) sees before a write that it restores a field that
//     others have changed. A contention is over soon, because its pauses keep an object from
//     being handled. It is reported once, when it begins.
//   - Children (pkg/reconcile/converge) are restored by calls of a handler, which other events
//     cause as well. A contention lasts longer than any pause, so that these calls do not
//     report it again.
//   - Webhooks (pkg/webhook/configurations) are not watched, but compared once a minute. A
//     comparison shows at most one change, however many there were, so already the first
//     change is followed by a pause. Without its webhooks an operator does not do its duty, so
//     the first change is reported as well, and all changes at most every few minutes.
//
// The package has no state and no clock: a Count is a value that its user keeps.
package contention

import (
	"cmp"
	"time"
)

// Rule says when the changes of a rival are a contention, and how to slow down.
type Rule struct {
	// Patience is the number of changes that are undone at once.
	Patience int
	// Window is the longest time between two changes that count together, before and apart from
	// the pauses of a contention.
	Window time.Duration
	// Delays are the pauses after the changes that follow. The last one repeats. Without delays,
	// there are no pauses.
	Delays []time.Duration
	// Calm extends the window during a contention. Zero means twice the last pause.
	Calm time.Duration
}

// Count counts the changes of a rival that the operator has undone in a row. The zero value means
// that there are none.
type Count struct {
	changes int
	last    time.Time
}

// Next returns the count after one more change.
func (c Count) Next(r Rule, now time.Time) Count {
	if c.IsOver(r, now) {
		c.changes = 0
	}
	return Count{c.changes + 1, now}
}

// Begins reports whether the last change is the one with which a contention begins.
func (c Count) Begins(r Rule) bool { return c.changes == r.Patience+1 }

// Delay returns the pause after the last change.
func (c Count) Delay(r Rule) time.Duration {
	if !c.isContention(r) || len(r.Delays) == 0 {
		return 0
	}
	return r.Delays[min(c.changes-r.Patience-1, len(r.Delays)-1)]
}

// Left returns what is left of the pause after the last change.
func (c Count) Left(r Rule, now time.Time) time.Duration {
	return max(0, c.last.Add(c.Delay(r)).Sub(now))
}

// IsOpen reports whether there is a contention that is not over.
func (c Count) IsOpen(r Rule, now time.Time) bool { return c.isContention(r) && !c.IsOver(r, now) }

// IsOver reports whether the rival has been quiet for so long that its next change is the first one.
func (c Count) IsOver(r Rule, now time.Time) bool {
	window := r.Window
	if c.isContention(r) {
		window += cmp.Or(r.Calm, 2*c.Delay(r))
	}
	return now.Sub(c.last) > window
}

func (c Count) isContention(r Rule) bool { return c.changes > r.Patience }

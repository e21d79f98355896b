// Package stop has the reasons why a daemon or a timer must stop.
//
//	if t.StopReason().Has(stop.Deleted) { … }
//
// Specification: Daemons, "Termination".
package stop

import "strings"

// Reason is the set of reasons why a daemon or a timer must stop. Reasons can be combined and
// added later. 0 means that it does not have to stop.
type Reason uint16

// The reasons, and the progress of the termination.
const (
	Deleted        Reason = 1 << iota // the object is deleted, or marked for it
	Mismatch                          // the object no longer matches the filters
	Paused                            // the operator is paused
	Exiting                           // the operator exits
	Signaled                          // the handler was asked to stop
	Canceled                          // its context was canceled
	Abandoned                         // the operator no longer waits for it
	Misfit                            // the object no longer fits the Go type of the handler
	LeadershipLost                    // another replica may lead by now: nothing is written anymore
	Moved                             // another replica takes over the object
)

var names = [...]string{"deleted", "mismatch", "paused", "exiting", "signaled", "canceled", "abandoned", "misfit", "leadershipLost", "moved"}

// Has reports whether the set contains all of the given reasons.
func (r Reason) Has(reason Reason) bool { return r&reason == reason }

// String lists the reasons, such as "deleted|signaled".
func (r Reason) String() string {
	var all []string
	for i, name := range names {
		if r.Has(1 << i) {
			all = append(all, name)
		}
	}
	return strings.Join(all, "|")
}

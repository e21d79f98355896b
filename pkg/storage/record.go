package storage

import (
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
)

// Record is what is remembered of one handler in an open handling cycle. It
// marshals to JSON and back in the form that Kopf's operators share; see
// formats.md. Times are kept to the microsecond.
type Record struct {
	Started time.Time    // of the first attempt; zero: absent
	Stopped time.Time    // of the final success or failure; zero: not yet
	Delayed time.Time    // not to be tried again before; zero: no delay
	Purpose cause.Reason // what the cycle is about; empty: unknown
	Retries int          // attempts so far
	Success bool         // finally succeeded: never to be called again in this cycle
	Failure bool         // finally failed: likewise
	Message string       // the last error; cut to MaxMessage when it is stored
	Subrefs []string     // the ids of the sub-handlers, of all levels below

	// absent are the fields that the stored record did not have. They are left
	// out again for as long as they are zero, so that a record is stored as it
	// was read. A record made here has them all.
	absent absentFields
}

type absentFields struct{ retries, success, failure bool }

// MaxMessage is how many bytes of an error message are stored. All annotations
// of an object share 256 KiB, and an error may quote anything.
const MaxMessage = 2048

// Finished tells whether the handler is not to be called again in this cycle.
func (r *Record) Finished() bool { return r.Success || r.Failure }

// Equal tells whether the records are the same as they are stored: to the
// microsecond, with the message cut, and with an absent number or flag as zero.
func (r *Record) Equal(other *Record) bool {
	if r == nil || other == nil {
		return r == other
	}
	a, b := *r, *other
	a.absent, b.absent = absentFields{}, absentFields{}
	before, beforeErr := a.text(false)
	after, afterErr := b.text(false)
	return beforeErr == nil && afterErr == nil && before == after
}

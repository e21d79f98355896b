// Package verdict says, for an object and a handler, why the handler is called, or why not. The
// engine fills in what it knows; messages and commands print the result.
package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
)

// State is the answer in one word.
type State string

// The states, in the order in which they are examined.
const (
	Succeeded   State = "succeeded"   // in this cycle
	Failed      State = "failed"      // permanently, in this cycle
	Skipped     State = "skipped"     // by a request
	Dropped     State = "dropped"     // it was retried, and a filter no longer matches
	OtherReason State = "otherReason" // its kind is not for what has happened to the object
	Unchanged   State = "unchanged"   // its field has not changed
	Mismatched  State = "mismatched"  // a filter does not match
	Paused      State = "paused"      // the operator is paused; Of does not know that
	Suspended   State = "suspended"   // the object is suspended by a request
	Misfit      State = "misfit"      // the object does not fit its Go type
	Waiting     State = "waiting"     // for its next attempt
	OutOfTurn   State = "outOfTurn"   // for the end of other handlers
	Untriggered State = "untriggered" // nothing has happened to other objects that it is called for
	Due         State = "due"         // it is called in the next pass
)

// Verdict is the answer for one object and one handler.
type Verdict struct {
	Handler string
	Kind    handler.Kind
	State   State
	// Filter is the filter that does not match, if that is the reason. An open handler with such a
	// filter is called nevertheless.
	Filter handler.Mismatch
	// Until is the end of the wait or of the suspension; zero if it has none.
	Until time.Time
	// Attempts is the number of attempts so far.
	Attempts int
	// Message is the last error or the misfit.
	Message string
}

// Facts are everything that a Verdict depends on. Fields that are not known can be zero.
type Facts struct {
	Declaration *handler.Declaration
	Cause       *handler.Cause
	// Record is the record of the handler for this cause, or nil if there is none.
	Record *Record
	// TakesPart is set if the handler is known to be called for this cause, whatever its filters
	// say: a request calls it again, or it has seen a change that was taken back.
	TakesPart bool
	// Misfit is why the object does not fit the Go type, or nil if it fits. The handler waits until it does.
	Misfit error
	// WaitsFor contains the ids of the handlers that it waits for.
	WaitsFor []string
	// Skip is why it is not called for this cause at all: those handlers rule it out, or it does not wait until the
	// object fits. It is empty otherwise.
	Skip string
	// Suspended is set while a request suspends the object, until a time if there is one.
	Suspended      bool
	SuspendedUntil time.Time
	Now            time.Time
}

// Record is the progress of a handler.
type Record struct {
	Attempts         int
	Message          string    // the last error, or why it was skipped
	Delayed          time.Time // the earliest time of the next attempt; zero for none
	Success, Failure bool      // at most one of them; none if it has not ended
}

// Of returns the verdict about the facts.
func Of(f Facts) Verdict {
	v := Verdict{Handler: f.Declaration.ID, Kind: f.Declaration.Kind}
	if r := f.Record; r != nil {
		v.Attempts = r.Attempts
		v.Message = r.Message
		switch {
		case r.Failure:
			v.State = Failed
			return v
		case r.Success && r.Message != "":
			v.State = Skipped
			return v
		case r.Success:
			v.State = Succeeded
			return v
		}
	}

	// It has not ended: do its filters match?
	v.Filter = f.Declaration.Mismatch(f.Cause)
	if !v.Filter.Matches() && !f.TakesPart {
		switch {
		case v.Filter.Filter == handler.FilterReason || v.Filter.Filter == handler.FilterReview:
			v.State = OtherReason
		case v.Filter.Filter == handler.FilterChange:
			v.State = Unchanged
		case v.Attempts > 0:
			v.State = Dropped
		default:
			v.State = Mismatched
		}
		return v
	}

	// It is for the object: what does it wait for?
	isTriggered := f.Declaration.Kind.IsTriggered() || f.Declaration.Kind == handler.OnDrift
	switch {
	case isTriggered && f.Record == nil:
		v.State = Untriggered
	case f.Suspended:
		v.State = Suspended
		v.Until = f.SuspendedUntil
	case f.Misfit != nil:
		v.State = Misfit
		v.Message = f.Misfit.Error()
	case f.Skip != "":
		v.State = Skipped
		v.Message = f.Skip
	case len(f.WaitsFor) > 0:
		v.State = OutOfTurn
		v.Message = "for " + strings.Join(f.WaitsFor, ", ")
	case f.Record != nil && f.Record.Delayed.After(f.Now):
		v.State = Waiting
		v.Until = f.Record.Delayed
	default:
		v.State = Due
	}
	return v
}

// IsOpen reports whether the handler is still to be called for this cause.
func (v Verdict) IsOpen() bool {
	switch v.State {
	case Suspended, Misfit, OutOfTurn, Waiting, Due:
		return true
	default:
		return false
	}
}

// String returns the verdict as a sentence without the name of the handler: "waits until …".
func (v Verdict) String() string {
	switch v.State {
	case Succeeded:
		return "has succeeded" + v.after()
	case Failed:
		return "has failed permanently" + v.after() + v.because()
	case Skipped:
		return "is skipped" + v.because()
	case Dropped:
		return fmt.Sprintf("is not retried anymore%s, because %s does not match anymore; its last error%s", v.after(), v.Filter, v.because())
	case OtherReason:
		return "is not for what has happened to the object"
	case Unchanged:
		return "is not called, because its field " + v.Filter.Key + " has not changed"
	case Mismatched:
		return "is not for this object, because " + v.Filter.String() + " does not match"
	case Untriggered:
		return "waits for a change of other objects, such as children"
	case Suspended:
		return "waits, because the object is suspended" + v.until()
	case Misfit:
		return "cannot be called" + v.because()
	case OutOfTurn:
		return "waits " + v.Message
	case Waiting:
		return "waits" + v.until() + v.after() + v.because()
	default:
		return "is due" + v.after() + v.because()
	}
}

func (v Verdict) after() string {
	switch v.Attempts {
	case 0:
		return ""
	case 1:
		return " after 1 attempt"
	default:
		return fmt.Sprintf(" after %d attempts", v.Attempts)
	}
}

func (v Verdict) until() string {
	if v.Until.IsZero() {
		return ""
	}
	return " until " + v.Until.UTC().Format(time.RFC3339)
}

func (v Verdict) because() string {
	if v.Message == "" {
		return ""
	}
	return ": " + v.Message
}

package storage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/storage/internal/wire"
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

// Finished reports whether the handler is not to be called again in this cycle.
func (r *Record) Finished() bool { return r.Success || r.Failure }

// Equal reports whether the records are the same as they are stored: to the
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

// wireRecord is a record as it is stored. The order of the fields is the one in
// which people see them.
type wireRecord struct {
	Started *string  `json:"started,omitempty"`
	Stopped *string  `json:"stopped,omitempty"`
	Delayed *string  `json:"delayed,omitempty"`
	Purpose *string  `json:"purpose,omitempty"`
	Retries *int64   `json:"retries,omitempty"`
	Success *bool    `json:"success,omitempty"`
	Failure *bool    `json:"failure,omitempty"`
	Message *string  `json:"message,omitempty"`
	Subrefs []string `json:"subrefs,omitempty"`
}

// verboseRecord is the same with its nulls.
type verboseRecord struct {
	Started *string  `json:"started"`
	Stopped *string  `json:"stopped"`
	Delayed *string  `json:"delayed"`
	Purpose *string  `json:"purpose"`
	Retries *int64   `json:"retries"`
	Success *bool    `json:"success"`
	Failure *bool    `json:"failure"`
	Message *string  `json:"message"`
	Subrefs []string `json:"subrefs"`
}

// MarshalJSON writes the record without what is absent.
func (r Record) MarshalJSON() ([]byte, error) { return json.Marshal(r.wire()) }

// UnmarshalJSON reads a record, with or without nulls, and ignores fields that it
// does not know. It fails for fields of a wrong type, for a negative number of
// retries, and for times that nobody can have meant; see formats.md.
func (r *Record) UnmarshalJSON(data []byte) error {
	if trimmed := bytes.TrimSpace(data); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("a record must be a JSON mapping")
	}
	var wire wireRecord
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &wire); err != nil {
		return plainly(err)
	}
	record, err := wire.record()
	if err != nil {
		return err
	}
	*r = record
	return nil
}

// text is the record as one compact line of JSON.
func (r *Record) text(verbose bool) (string, error) {
	if verbose {
		return wire.Compact(verboseRecord(r.wire()))
	}
	return wire.Compact(r.wire())
}

func (r *Record) wire() wireRecord {
	return wireRecord{
		Started: wire.FormatTime(r.Started),
		Stopped: wire.FormatTime(r.Stopped),
		Delayed: wire.FormatTime(r.Delayed),
		Purpose: unlessZero(string(r.Purpose)),
		Retries: unlessAbsent(int64(r.Retries), r.absent.retries),
		Success: unlessAbsent(r.Success, r.absent.success),
		Failure: unlessAbsent(r.Failure, r.absent.failure),
		Message: unlessZero(cut(r.Message, MaxMessage)),
		Subrefs: r.Subrefs,
	}
}

func (w wireRecord) record() (Record, error) {
	retries := value(w.Retries)
	if retries < 0 || retries > math.MaxInt32 {
		return Record{}, fmt.Errorf("%d is no number of retries", retries)
	}
	started, startedErr := wire.ParseTime("started", w.Started)
	stopped, stoppedErr := wire.ParseTime("stopped", w.Stopped)
	delayed, delayedErr := wire.ParseTime("delayed", w.Delayed)
	return Record{
		Started: started,
		Stopped: stopped,
		Delayed: delayed,
		Purpose: cause.Reason(value(w.Purpose)),
		Retries: int(retries),
		Success: value(w.Success),
		Failure: value(w.Failure),
		Message: value(w.Message),
		Subrefs: w.Subrefs,
		absent:  absentFields{w.Retries == nil, w.Success == nil, w.Failure == nil},
	}, errors.Join(startedErr, stoppedErr, delayedErr)
}

// plainly tells about a wrong type without Go's name for it, and without the
// value, which may be anything.
func plainly(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	kind, _, _ := strings.Cut(wrong.Value, " ")
	return fmt.Errorf("%s has a wrong value of type %s", wrong.Field, kind)
}

func value[T any](pointer *T) (zero T) {
	if pointer == nil {
		return zero
	}
	return *pointer
}

func unlessZero[T comparable](value T) *T { return unlessAbsent(value, true) }

func unlessAbsent[T comparable](value T, absent bool) *T {
	var zero T
	if absent && value == zero {
		return nil
	}
	return &value
}

// cut shortens a text between two characters, never inside of one.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len("...")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.ToValidUTF8(text[:end], "\uFFFD") + "..."
}

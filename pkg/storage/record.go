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

// Record is the progress of one handler in an open handling cycle. It marshals to JSON
// and back in the format of Kopf's operators; see formats.md. Times have a precision of
// a microsecond.
type Record struct {
	Started time.Time    // time of the first attempt; zero: unknown
	Stopped time.Time    // time of the final success or failure; zero: not finished
	Delayed time.Time    // earliest time of the next attempt; zero: no delay
	Purpose cause.Reason // reason of the cycle; empty: unknown
	Retries int          // attempts so far
	Success bool         // finally succeeded: not called again in this cycle
	Failure bool         // finally failed: not called again in this cycle
	Message string       // the last error; truncated to MaxMessage when stored
	Subrefs []string     // ids of the sub-handlers of all levels
	Cycle   string       // token of the Cycle in which the handler ended; empty: unknown

	// Schedule is the schedule of a timer whose last run the record is, with its time zone:
	// "CRON_TZ=UTC 0 3 * * *". Empty: unknown.
	Schedule string

	// absent marks the fields that the stored record did not have. They stay absent as
	// long as they are zero, so that a record is stored as it was read. New records
	// have all fields.
	absent absentFields
}

type absentFields struct{ retries, success, failure bool }

// MaxMessage is the maximum size in bytes of a stored error message. All annotations of
// an object share 256 KiB, and an error may quote anything.
const MaxMessage = 2048

// Finished reports whether the handler has finally succeeded or failed in this cycle.
func (r *Record) Finished() bool { return r.Success || r.Failure }

// Equal reports whether the records have the same stored form: with times to the
// microsecond, truncated messages, and absent numbers and flags as zero.
func (r *Record) Equal(other *Record) bool {
	if r == nil || other == nil {
		return r == other
	}
	a := *r
	b := *other
	a.absent = absentFields{}
	b.absent = absentFields{}
	before, beforeErr := a.text(false)
	after, afterErr := b.text(false)
	return beforeErr == nil && afterErr == nil && before == after
}

// wireRecord is the stored form of a record. The order of the fields is the order in
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
	Cycle   *string  `json:"cycle,omitempty"`

	Schedule *string `json:"schedule,omitempty"`
}

// verboseRecord is a wireRecord that includes nulls.
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
	Cycle   *string  `json:"cycle,omitempty"`

	Schedule *string `json:"schedule,omitempty"`
}

// MarshalJSON encodes the record without absent fields.
func (r Record) MarshalJSON() ([]byte, error) { return json.Marshal(r.wire()) }

// UnmarshalJSON decodes a record with or without nulls, and ignores unknown fields. It
// fails if a field has the wrong type, if the number of retries is negative, or if a
// time is out of range; see formats.md.
func (r *Record) UnmarshalJSON(data []byte) error {
	if trimmed := bytes.TrimSpace(data); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("a record must be a JSON object")
	}
	var wire wireRecord
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &wire); err != nil {
		return describeTypeError(err)
	}
	record, err := wire.record()
	if err != nil {
		return err
	}
	*r = record
	return nil
}

// text encodes the record as one line of JSON.
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
		Message: unlessZero(truncate(r.Message, MaxMessage)),
		Subrefs: r.Subrefs,
		Cycle:   unlessZero(r.Cycle),

		Schedule: unlessZero(r.Schedule),
	}
}

func (w wireRecord) record() (Record, error) {
	retries := value(w.Retries)
	if retries < 0 || retries > math.MaxInt32 {
		return Record{}, fmt.Errorf("%d is not a valid number of retries", retries)
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
		Cycle:   value(w.Cycle),

		Schedule: value(w.Schedule),

		absent: absentFields{w.Retries == nil, w.Success == nil, w.Failure == nil},
	}, errors.Join(startedErr, stoppedErr, delayedErr)
}

// describeTypeError describes a wrong type without Go's name for it, and without the value,
// which may be secret.
func describeTypeError(err error) error {
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

// truncate shortens a text between two characters, never inside one.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len("...")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.ToValidUTF8(text[:end], "\uFFFD") + "..."
}

package object

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Value is the value of one field, which may be absent: the old and the new
// value that a handler gets, or the one that a filter is asked about. Of a value
// in a hashed baseline only the equality with another one can be told.
type Value struct{ value any }

// Opaque stands for a value that is not known, only whether another one equals it.
type Opaque interface{ EqualTo(value any) bool }

// unknown is a field of a value that is itself opaque: nothing can be told about
// it. It equals nothing, for a handler had better be called once too often.
type unknown struct{}

func (unknown) EqualTo(any) bool { return false }

func (unknown) String() string { return "(unknown)" }

func (unknown) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// NewValue wraps a decoded JSON value; nil is absence. Nobody may change it afterwards.
func NewValue(value any) Value { return Value{value} }

// Exists reports whether there is a value.
func (v Value) Exists() bool { return v.value != nil }

// Known reports whether the value, with everything in it, can be read. It cannot
// where only hashes were kept: of Secrets, and of very large objects.
func (v Value) Known() bool { return known(v.value) }

func known(value any) bool {
	switch value := value.(type) {
	case Opaque:
		return false
	case map[string]any:
		for _, item := range value {
			if !known(item) {
				return false
			}
		}
	}
	return true
}

// Any is the value; nil if it is absent or unknown. Lists and mappings are copies.
func (v Value) Any() any {
	if !v.Known() {
		return nil
	}
	return Copy(v.value)
}

// Text is the value if it is a string.
func (v Value) Text() (string, bool) { text, ok := v.value.(string); return text, ok }

// View is the value if it is a mapping; an empty view otherwise.
func (v Value) View() View { mapping, _ := v.value.(map[string]any); return View{mapping} }

// Equals compares with another value as JSON does: 1 equals 1.0.
func (v Value) Equals(other any) bool { return Equal(v.value, other) }

// Decode writes the value into a typed one, as json.Unmarshal does. It does
// nothing when the value is absent, and fails when it is unknown.
func (v Value) Decode(into any) error { return v.decode(into, "the value") }

func (v Value) decode(into any, what string) error {
	if !v.Exists() {
		return nil
	}
	if !v.Known() {
		return errors.New("only hashes of " + what + " were kept: it can be compared, but not read")
	}
	data, err := json.Marshal(v.value)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("%s does not fit %T: %w", what, into, err)
	}
	return nil
}

// String shows the value for messages.
func (v Value) String() string {
	switch {
	case !v.Exists():
		return "(absent)"
	case !v.Known():
		return "(unknown)"
	default:
		return fmt.Sprint(v.value)
	}
}

package object

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Value is the value of one field, which may be absent: an old or new value in a handler,
// or the value that a filter checks. If the diff base stores only its hash, it can only be
// compared with other values.
type Value struct{ value any }

// Opaque represents an unknown value that can only be compared with other values.
type Opaque interface{ EqualTo(value any) bool }

// unknown is a field of an opaque value. It equals nothing, because calling a handler once
// too often is better than not calling it.
type unknown struct{}

func (unknown) EqualTo(any) bool { return false }

func (unknown) String() string { return "(unknown)" }

func (unknown) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// NewValue wraps a decoded JSON value; nil means absent. Do not modify the value afterwards.
func NewValue(value any) Value { return Value{value} }

// Exists reports whether there is a value.
func (v Value) Exists() bool { return v.value != nil }

// Known reports whether the value, including everything in it, can be read. It returns
// false where only hashes are stored: for Secrets and very large objects.
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

// Any returns the value, or nil if it is absent or unknown. Lists and mappings are copies.
func (v Value) Any() any {
	if !v.Known() {
		return nil
	}
	return Copy(v.value)
}

// Text returns the value if it is a string. Like Bool, Int64, Float64, and Strings, it
// returns false if the value is absent, is unknown, or has another type: Exists and Known
// tell these apart.
func (v Value) Text() (string, bool) { text, ok := v.value.(string); return text, ok }

// Bool returns the value if it is a boolean.
func (v Value) Bool() (value, ok bool) { value, ok = v.value.(bool); return value, ok }

// Int64 returns the value if it is a whole number: 1 and 1.0, but not 1.5.
func (v Value) Int64() (int64, bool) { n, _ := toNumber(v.value); return n.whole, n.isWhole }

// Float64 returns the value if it is a number.
func (v Value) Float64() (float64, bool) {
	n, ok := toNumber(v.value)
	if n.isWhole {
		return float64(n.whole), true
	}
	return n.float, ok
}

// Strings returns a copy of the value if it is a list that contains only strings.
func (v Value) Strings() ([]string, bool) {
	items, ok := v.value.([]any)
	if !ok {
		return nil, false
	}
	list := make([]string, 0, len(items))
	for _, item := range items {
		text, isText := item.(string)
		if !isText {
			return nil, false
		}
		list = append(list, text)
	}
	return list, true
}

// View returns the value if it is a mapping, and an empty view otherwise.
func (v Value) View() View { mapping, _ := v.value.(map[string]any); return View{mapping} }

// Equals compares the value with another one by the rules of JSON: 1 equals 1.0.
func (v Value) Equals(other any) bool { return Equal(v.value, other) }

// Decode decodes the value into a typed one, like json.Unmarshal. It does nothing if the
// value is absent, and fails if it is unknown.
func (v Value) Decode(into any) error { return v.decode(into, "the value") }

func (v Value) decode(into any, what string) error {
	if !v.Exists() {
		return nil
	}
	if !v.Known() {
		return errors.New("only a hash of " + what + " is stored: it can be compared, but not read")
	}
	data, err := json.Marshal(v.value)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	var misfit *json.UnmarshalTypeError
	switch {
	case errors.As(err, &misfit) && misfit.Field != "": // without the Go type of the whole, which can be long
		return &fieldError{fmt.Sprintf("%s does not fit: the field %q has the %s, which is no %s", what, misfit.Field, misfit.Value, misfit.Type), err}
	case err != nil:
		return fmt.Errorf("%s does not fit %T: %w", what, into, err)
	}
	return nil
}

// fieldError is an error of encoding/json in other words.
type fieldError struct {
	text string
	err  error
}

func (e *fieldError) Error() string { return e.text }

func (e *fieldError) Unwrap() error { return e.err }

// String formats the value for messages.
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

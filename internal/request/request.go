// Package request reads the requests that people attach to objects as annotations: to retry,
// rerun, or skip a handler, or to suspend an object.
//
// A request is never removed by the operator, because deployment pipelines would put it back.
// Instead, the operator stores the value that it has honored, and honors each value once,
// also across restarts and takeovers.
package request

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verb names the requested action.
type Verb string

// The verbs.
const (
	// Retry makes a handler due that waits for its next attempt.
	Retry Verb = "retry"
	// Rerun calls a handler again that has ended.
	Rerun Verb = "rerun"
	// Skip gives up a handler that has not ended, or whose failure holds a deletion.
	Skip Verb = "skip"
	// Suspend calls no handlers of the object.
	Suspend Verb = "suspend"
)

// Handled is the name of the annotation with the values that were honored.
const Handled = "requests-handled"

// Name returns the name of the annotation for the verb, without the prefix.
func (v Verb) Name() string { return "request-" + string(v) }

// Abandon is the word that a request to skip a deletion handler must contain, because nothing
// cleans up for it afterwards.
const Abandon = "abandon"

// Forever suspends an object until the request is removed.
const Forever = "forever"

// maxValue limits the length of a request.
const maxValue = 1024

// Request is a request about handlers.
type Request struct {
	Verb Verb
	// Value is the annotation's value, which distinguishes the request from earlier ones.
	Value string
	// Handlers are the ids of the handlers.
	Handlers []string
	// Abandon is set if deletion handlers can be skipped.
	Abandon bool
}

// Parse reads a request to retry, rerun, or skip handlers: a token, which is any word that was
// not used before, and the ids of the handlers.
func Parse(verb Verb, value string) (Request, error) {
	words := strings.Fields(value)
	r := Request{Verb: verb, Value: value}
	switch {
	case len(value) > maxValue:
		return r, fmt.Errorf("the value is longer than %d bytes", maxValue)
	case len(words) == 0:
		return r, errors.New(`the value is empty: use a token and the ids of handlers, such as "1 createFn"`)
	}
	r.Handlers = words[1:]
	if verb == Skip {
		r.Handlers = slices.DeleteFunc(slices.Clone(r.Handlers), func(word string) bool { return word == Abandon })
		r.Abandon = len(r.Handlers) < len(words[1:])
	}
	if len(r.Handlers) == 0 {
		return r, fmt.Errorf("the value %q names no handler: use a token and the ids of handlers, such as %q", value, "1 createFn")
	}
	return r, nil
}

// ParseSuspension returns the time until which a value suspends an object. The zero time means
// that it has no end.
func ParseSuspension(value string) (until time.Time, err error) {
	if value == Forever {
		return time.Time{}, nil
	}
	until, err = time.Parse(time.RFC3339, value)
	if err != nil {
		return until, fmt.Errorf("the value %.100q is neither a time, such as %q, nor %q", value, "2026-01-31T12:00:00Z", Forever)
	}
	return until, nil
}

// ParseHandled reads the values that were honored. Unreadable ones count as none.
func ParseHandled(text string) map[Verb]string {
	var handled map[Verb]string
	if err := json.Unmarshal([]byte(text), &handled); err != nil {
		return nil
	}
	return handled
}

// FormatHandled is the inverse of ParseHandled.
func FormatHandled(handled map[Verb]string) string {
	text, _ := json.Marshal(handled) // never fails
	return string(text)
}

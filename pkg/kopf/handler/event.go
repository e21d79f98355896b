package handler

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/kopf/cause"
	"github.com/kopf-go/kopf/pkg/kopf/diff"
	"github.com/kopf-go/kopf/pkg/kopf/object"
)

// EventFunc is a handler of every single watch event of an object. Its errors
// are logged and ignored; nothing of it is persisted but its patch and result.
type EventFunc func(ctx context.Context, e *Event) error

// Event is the arguments of an EventFunc.
//
// Specification: Handlers, "Event-watching handlers".
type Event struct {
	common
	kind   watch.EventType
	result any
}

var _ Arguments = (*Event)(nil)

// NewEvent makes the arguments of one call. The type is empty for an object
// that was found by the initial listing.
func NewEvent(s Subject, param any, kind watch.EventType) *Event {
	return &Event{common: common{s, param}, kind: kind}
}

// Type is ADDED, MODIFIED or DELETED; empty for an object that was there before
// the operator.
func (e *Event) Type() watch.EventType { return e.kind }

// SetResult stores a value under status.<handler id>.
func (e *Event) SetResult(value any) { e.result = value }

// Result is what SetResult was given last.
func (e *Event) Result() any { return e.result }

// Reason is empty: an event handler does not know what has happened.
func (e *Event) Reason() cause.Reason { return "" }

// Old is absent: an event has no old state.
func (e *Event) Old() object.Value { return object.Value{} }

// New is the object as it is now.
func (e *Event) New() object.Value { return object.NewValue(e.Body().Raw()) }

// Diff is empty.
func (e *Event) Diff() diff.Diff { return nil }

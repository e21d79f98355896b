package handler

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
)

// EventFunc is a handler of every single watch event of an object. Its errors
// are logged and ignored; nothing of it is persisted but its patch and result.
type EventFunc func(ctx context.Context, e *Event) error

// Event is the arguments of an EventFunc.
//
// Specification: Handlers, "Event-watching handlers".
type Event struct {
	writable
	resultHolder
	kind watch.EventType
}

var _ Arguments = (*Event)(nil)

// NewEvent makes the arguments of one call. The type is empty for an object
// that was found by the initial listing.
func NewEvent(s CallContext, param any, kind watch.EventType) *Event {
	return &Event{writable: newWritable(s, param), kind: kind}
}

// Type is ADDED, MODIFIED or DELETED; empty for an object that was there before
// the operator.
func (e *Event) Type() watch.EventType { return e.kind }

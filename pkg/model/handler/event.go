package handler

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
)

// EventFunc handles every watch event of an object. Its errors are logged and ignored.
// Only its patch and result are written.
type EventFunc func(ctx context.Context, e *Event) error

// Event contains the arguments of an EventFunc.
//
// Specification: Handlers, "Event-watching handlers".
type Event struct {
	writable
	resultHolder
	kind watch.EventType
}

var _ Arguments = (*Event)(nil)

// NewEvent returns the arguments of one call. The type is empty for an object from the
// initial list.
func NewEvent(s CallContext, param any, kind watch.EventType) *Event {
	return &Event{writable: newWritable(s, param), kind: kind}
}

// Type returns ADDED, MODIFIED, or DELETED, or "" for an object from the initial list.
func (e *Event) Type() watch.EventType { return e.kind }

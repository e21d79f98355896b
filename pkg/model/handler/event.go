package handler

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/object"
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

// IndexFunc returns the values of an object in an index. If it returns nil, the index
// keeps its values. It is called for every watch event of the object, and delays all
// other handlers, so it must be fast. Its result goes to the Table of its declaration.
//
// Specification: In-memory indexing.
type IndexFunc func(ctx context.Context, i *Indexed) (any, error)

// Indexed contains the arguments of an IndexFunc: the object without the means to change
// it.
//
// Specification: Arguments; In-memory indexing.
type Indexed struct {
	readOnly
	attemptInfo
}

var _ Arguments = (*Indexed)(nil)

// NewIndexed returns the arguments of one call.
func NewIndexed(s CallContext, param any, a Attempt) *Indexed {
	return &Indexed{readOnly{s, param}, attemptInfo{a}}
}

// Table is the engine's interface to an index. It is safe for concurrent use.
type Table interface {
	// Claim reserves the index for an operator. It fails if another operator uses it.
	Claim() error
	// Release empties the index, and lets another operator claim it.
	Release()
	// Replace replaces the values of an object. It fails if they do not have the type of the
	// index.
	Replace(key object.Key, values any) error
	// Remove removes all values of an object.
	Remove(key object.Key)
	// RemoveAll removes the values of all objects for which the function returns true.
	RemoveAll(gone func(key object.Key) bool)
}

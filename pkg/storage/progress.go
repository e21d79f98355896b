package storage

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Progress keeps one record per object and handler for as long as a handling
// cycle is open: which handlers are done, and when the others are tried again.
//
// Users may implement it over an external database; Record marshals to JSON. An
// implementation is called concurrently for different objects, and never twice
// at a time for one.
//
// Store and Purge are called before the API write of the same pass. If that
// write or they themselves fail, the pass is repeated, and they may be called
// again with the same values: they must be idempotent. A storage that keeps its
// records on the object adds them to the patch; any other one leaves it alone.
//
// Specification: Configuration, "Handling progress".
type Progress interface {
	// Fetch returns the record of the handler, or nil if there is none. A stored
	// value that cannot be read is a *BrokenError: the engine tells about it, and
	// goes on as if there were none.
	Fetch(ctx context.Context, body *object.Body, handlerID string) (*Record, error)

	// Store keeps the record in place of the one that was stored before. It must
	// not keep the pointer.
	Store(ctx context.Context, body *object.Body, into Patch, handlerID string, record *Record) error

	// Purge forgets the record; it writes nothing if there is none.
	Purge(ctx context.Context, body *object.Body, into Patch, handlerID string) error

	// Clear leaves this storage's own traces out of an essence, so that keeping
	// progress is no change of the object. The essence itself is read only: Clear
	// returns it if it has no traces, and another one if it has.
	Clear(essence object.Essence) object.Essence
}

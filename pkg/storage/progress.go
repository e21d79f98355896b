package storage

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Progress stores a record per object and handler while a handling cycle is open:
// which handlers have finished, and when the others are called again.
//
// You can implement it with an external database: also implement Eraser then. A Record marshals to
// JSON. The engine calls the methods concurrently for different objects, but one at a time for
// each object. Methods with a context may take long: only this object waits.
//
// The engine calls Store and Purge before the API write of the same pass. If that write
// or one of them fails, the pass is repeated, and they may be called again with the
// same values: they must be idempotent. A storage that keeps its records on the object
// adds them to the patch; other storages leave the patch alone.
//
// Specification: Configuration, "Handling progress".
type Progress interface {
	// Fetch returns the record of the handler, or nil if there is none. If a stored
	// value cannot be read, it returns a *BrokenError: the engine reports it, and
	// continues as if nothing were stored.
	Fetch(ctx context.Context, body *object.Body, handlerID string) (*Record, error)

	// Store replaces the stored record. It must not retain the pointer.
	Store(ctx context.Context, body *object.Body, into Patch, handlerID string, record *Record) error

	// Purge removes the record. It writes nothing if there is none.
	Purge(ctx context.Context, body *object.Body, into Patch, handlerID string) error

	// Clear removes this storage's own data from an essence, so that storing progress
	// does not count as a change of the object. The essence is read-only: Clear
	// returns it if there is nothing to remove, and a modified copy otherwise.
	Clear(essence object.Essence) object.Essence
}

// TouchPurger is a Progress that removes an annotation of Kopf. Kopf writes the
// current time to the annotation touch-dummy so that the watch shows the object again. The
// engine calls PurgeTouch for each write that is necessary anyway, so the removal costs no
// request.
//
// Specification: Configuration, "Handling progress".
type TouchPurger interface {
	Progress
	PurgeTouch(body *object.Body, into Patch)
}

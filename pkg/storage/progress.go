package storage

import (
	"context"
	"slices"

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
// adds them to the patch; other storages leave the patch alone. One that adds them to the
// status also implements InStatus.
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

// InStatus is a Progress or a CycleBase that can store in the status of the object. If the status is a subresource, the
// status and the rest of the object are written separately, and the operator can die in between. The engine needs to know
// that, so that the records of a cycle that has ended do not count in the next one.
type InStatus interface {
	// StoresInStatus reports whether Store, or StoreCycle, adds to nothing but the status. It is the same for all objects.
	StoresInStatus() bool
}

var (
	_ InStatus = StatusProgress{}
	_ InStatus = StatusDiffBase{}
	_ InStatus = MultiProgress{}
	_ InStatus = MultiDiffBase{}
)

// StoresInStatus reports whether the field is in the status.
func (s StatusProgress) StoresInStatus() bool { return s.field()[0] == "status" }

// StoresInStatus reports whether the field is in the status.
func (s StatusDiffBase) StoresInStatus() bool { return s.field()[0] == "status" }

// StoresInStatus reports whether all storages have their records in the status.
func (m MultiProgress) StoresInStatus() bool {
	return len(m) > 0 && !slices.ContainsFunc(m, func(each Progress) bool { return !isInStatus(each) })
}

// StoresInStatus reports whether the storage of the open cycle has it in the status.
func (m MultiDiffBase) StoresInStatus() bool {
	able := m.cycles()
	return len(able) > 0 && isInStatus(able[0])
}

func isInStatus(each any) bool {
	storage, ok := each.(InStatus)
	return ok && storage.StoresInStatus()
}

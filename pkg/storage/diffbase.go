package storage

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// DiffBase keeps the essence of every object as it was handled last: a later
// version is compared with it, so that a handler sees what has changed, also
// across restarts of the operator.
//
// Users may implement it over an external database; EncodeBase and DecodeBase
// make the text to keep there. An implementation is called concurrently for
// different objects, and never twice at a time for one.
//
// Store is called before the API write of the same pass. If that write or Store
// itself fails, the pass is repeated, and Store may be called again with the
// same values: it must be idempotent. A storage that keeps its data on the
// object adds it to the patch; any other one leaves the patch alone.
//
// Specification: Configuration, "Change detection".
type DiffBase interface {
	// Build makes the essence of the body: the part that change detection looks
	// at, and the extra fields that handlers are declared for. It is called for
	// every event, depends on nothing but its arguments, and returns no nil. The
	// essence is read only, and may share its parts with the body.
	Build(body *object.Body, extra []object.Path) object.Essence

	// Fetch returns the essence that was stored last, or nil for an object that
	// was never handled. A stored value that cannot be read is a *BrokenError:
	// the engine tells about it, and goes on as if there were none.
	Fetch(ctx context.Context, body *object.Body) (object.Essence, error)

	// Store keeps the essence in place of the one that was stored before.
	Store(ctx context.Context, body *object.Body, into Patch, essence object.Essence) error
}

// CycleBase is a DiffBase that also keeps the essence with which an unfinished
// handling cycle has begun. It becomes the base when the cycle ends, so that a
// change made meanwhile is not swallowed. With a DiffBase that is no CycleBase,
// a cycle that outlives its process ends with the essence of its last pass.
//
// The rules of DiffBase apply. In one patch, PurgeCycle comes before Store: the
// room that it frees counts.
type CycleBase interface {
	// FetchCycle returns the essence of the open cycle, or nil if none is kept.
	FetchCycle(ctx context.Context, body *object.Body) (object.Essence, error)

	// StoreCycle keeps the essence of a cycle that stays open after its first pass.
	StoreCycle(ctx context.Context, body *object.Body, into Patch, essence object.Essence) error

	// PurgeCycle forgets the essence; it writes nothing if there is none.
	PurgeCycle(ctx context.Context, body *object.Body, into Patch) error
}

// Hasher is a DiffBase that may keep hashes in place of values.
type Hasher interface {
	// Hashes tells why Store keeps this essence as hashes, or NotHashed. It is
	// meant to be asked when Store is called, with the same arguments.
	Hashes(body *object.Body, into Patch, essence object.Essence) HashReason
}

package storage

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// DiffBase stores the essence of every object as it was last handled. Later versions
// of the object are compared with it, so that handlers see what has changed, even
// across restarts of the operator.
//
// You can implement it with an external database: also implement Eraser then. Use EncodeBase and
// DecodeBase to convert the essence to and from text. The engine calls the methods concurrently for
// different objects, but one at a time for each object. Methods with a context may take long: only
// this object waits.
//
// The engine calls Store before the API write of the same pass. If that write or Store
// fails, the pass is repeated, and Store may be called again with the same values: it
// must be idempotent. A storage that keeps its data on the object adds it to the patch;
// other storages leave the patch alone.
//
// Specification: Configuration, "Change detection".
type DiffBase interface {
	// Build returns the essence of the body: the part that change detection compares,
	// and the extra fields that handlers are declared for. It is called for every
	// event, must depend only on its arguments, and must not return nil. The essence
	// is read-only, and may share its parts with the body.
	Build(body *object.Body, extra []object.Path) object.Essence

	// Fetch returns the essence that was stored last, or nil if the object was never
	// handled. If a stored value cannot be read, it returns a *BrokenError: the engine
	// reports it, and continues as if nothing were stored.
	Fetch(ctx context.Context, body *object.Body) (object.Essence, error)

	// Store replaces the stored essence.
	Store(ctx context.Context, body *object.Body, into Patch, essence object.Essence) error
}

// CycleBase is a DiffBase that also stores the states at which the handlers of an open
// cycle have ended. From them, the engine determines the next base and the next changes:
// changes made during the cycle are not lost, and no handler sees a change twice. With a
// DiffBase that is not a CycleBase, a cycle in which the object changes or that outlives
// its process ends with the essence of its last pass.
//
// You can use EncodeCycle and DecodeCycle to convert a cycle to and from text. The rules
// of DiffBase apply. In one patch, a former cycle is purged or replaced after Store, so
// that the base takes precedence if there is little room.
type CycleBase interface {
	// FetchCycle returns the open cycle, or nil if none is stored.
	FetchCycle(ctx context.Context, body *object.Body) (*Cycle, error)

	// StoreCycle stores the open cycle, when a handler of it has ended.
	StoreCycle(ctx context.Context, body *object.Body, into Patch, c *Cycle) error

	// PurgeCycle removes the cycle. It writes nothing if there is none.
	PurgeCycle(ctx context.Context, body *object.Body, into Patch) error
}

// Hasher is a DiffBase that may store hashes in place of values.
type Hasher interface {
	// Hashes returns why Store hashes this essence, or NotHashed. Call it when
	// Store is called, with the same arguments.
	Hashes(body *object.Body, into Patch, essence object.Essence) HashReason
}

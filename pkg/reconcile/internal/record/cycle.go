package record

import (
	"encoding/json"
	"slices"

	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Cycle is the handling of one change of one object, from its detection until all
// of its handlers have finished. It can take many passes, and survives restarts.
type Cycle struct {
	Reason cause.Reason
	// Base is the stored essence that was last handled; Old is the same without the
	// operator's own records. Nil means that the object was never handled.
	Base, Old object.Essence
	// New is the essence of this pass, which the handlers see.
	New      object.Essence
	Progress *call.Progress
	// Version is the resourceVersion of the object from which the stored records in Progress are.
	Version string
	// Declared contains the ids of all declared handlers.
	Declared []string
	// Sequences contains the ids of declared handlers that follow each other.
	Sequences [][]string
	// IsDue reports whether a declared handler is for the change between two states.
	IsDue func(id string, before, after object.Essence) bool
	// HoldOnFailure contains the ids of the deletion handlers whose failure holds the
	// object.
	HoldOnFailure []string

	// Called is set if the pass called a handler.
	Called bool
	// Skipped is set if the pass has skipped a handler on request.
	Skipped bool
	// Unreported contains the handlers that succeed if their edits can be written.
	Unreported []string
	// Settled is set if the cycle has ended, and nothing that this pass has seen is left to
	// handle.
	Settled bool
	// HasNext is set if the cycle has ended, and the next one begins with handlers that are ahead of the new base.
	HasNext bool
}

// Difference returns the essences that the cycle is about, and their difference.
func (c *Cycle) Difference() (before, after object.Essence, difference diff.Diff) {
	return c.Old, c.New, diff.Compute(c.Old, c.New, diff.Full)
}

// Reopen adds what earlier passes have stored about the cycle, if it is open: the handlers that are
// ahead of it, and those that must be called again.
func (c *Cycle) Reopen(stored Stored) {
	if stored.Open == nil || !c.Reason.IsChange() || !c.Progress.Stored().HasOpen(c.Reason) {
		return
	}
	for id := range stored.Open.At {
		c.Progress.SetAhead(id, c.Reason)
		c.Progress.Refer(c.TopOf(id), id)
	}
	for _, id := range stored.Open.Again {
		c.Progress.CallAgain(id)
		c.Progress.Refer(c.TopOf(id), id)
	}
}

// HeldByFailure returns the id of a failed deletion handler that holds the object, or "" if
// there is none.
func (c *Cycle) HeldByFailure() string {
	i := slices.IndexFunc(c.HoldOnFailure, func(id string) bool { return c.Progress.Load(id).Failure })
	if i < 0 {
		return ""
	}
	return c.HoldOnFailure[i]
}

// FailHandler records that a handler failed after its call: its edit was rejected.
// It reports whether the cycle has such a handler.
func (c *Cycle) FailHandler(id string, err error) bool {
	if c == nil || !c.Progress.Has(id) {
		return false
	}
	c.Progress.Fail(id, err)
	c.Unreported = slices.DeleteFunc(c.Unreported, func(unreported string) bool { return unreported == id })
	return true
}

// ReviseHandler records another outcome of the last attempt of a handler: its edit could not
// be computed. It reports whether the cycle has such a handler.
func (c *Cycle) ReviseHandler(id string, o call.Outcome) bool {
	if c == nil || !c.Progress.Has(id) {
		return false
	}
	c.Progress.Revise(id, o)
	c.Unreported = slices.DeleteFunc(c.Unreported, func(unreported string) bool {
		return unreported == id || !c.Progress.Load(unreported).Finished()
	})
	return true
}

// Calls are the calls of one pass that belong to no cycle. They have a record on the object only
// as long as they fail.
type Calls struct {
	Handlers registry.Handlers
	Progress *call.Progress
	// Records returns the records that the object must have, by the ids of the handlers. Nil
	// means that it must have none.
	Records func() map[string]*storage.Record
	// Done is called when the records and the edits of the calls are written.
	Done func()
}

// FailHandler records that a handler failed after its call, if it is one of these calls: its edit
// was rejected.
func (c *Calls) FailHandler(id string, err error) {
	if c != nil && c.Progress.Has(id) {
		c.Progress.Fail(id, err)
	}
}

// ReviseHandler is Cycle.ReviseHandler for these calls.
func (c *Calls) ReviseHandler(id string, o call.Outcome) bool {
	if c == nil || !c.Progress.Has(id) {
		return false
	}
	c.Progress.Revise(id, o)
	return true
}

// Ended returns the record of a call that has succeeded or failed permanently in this pass, or nil.
func (c *Calls) Ended(id string) *storage.Record {
	if !c.Progress.Has(id) || !c.Progress.Load(id).Finished() {
		return nil
	}
	return &c.Progress.Load(id).Record
}

// HasRecords reports whether the records on the object can change with these calls.
func (c *Calls) HasRecords() bool { return c != nil && len(c.Records()) > 0 }

// Packed holds the essences of a cycle in little memory, while the code of handlers runs. It
// is immutable, and safe for concurrent use.
type Packed struct {
	keeper Keeper
	body   *object.Body
	extra  []object.Path
	base   *object.Snapshot
	// unpacked is the base if it cannot be packed: parts of it are hashes.
	unpacked object.Essence
}

// Pack packs the essences of a cycle, whose current one is that of the body with the extra
// fields.
func (k Keeper) Pack(c *Cycle, body *object.Body, extra []object.Path) *Packed {
	p := &Packed{keeper: k, body: body, extra: extra}
	p.base = pack(c.Base)
	if p.base == nil {
		p.unpacked = c.Base
	}
	return p
}

// pack returns nil if there is no essence, or if it is not JSON.
func pack(essence object.Essence) *object.Snapshot {
	if !object.NewValue(essence).Known() {
		return nil
	}
	text, err := json.Marshal(essence)
	if err != nil {
		return nil
	}
	snapshot, err := object.ParseSnapshot(text)
	if err != nil {
		return nil
	}
	return snapshot
}

// Release removes the essences from the cycle.
func (c *Cycle) Release() {
	c.Base = nil
	c.Old = nil
	c.New = nil
}

// Restore adds the essences to the cycle again.
func (p *Packed) Restore(c *Cycle) {
	c.Base = p.unpacked
	if p.base != nil {
		c.Base = p.base.Body().Raw()
	}
	c.Old = p.keeper.clear(c.Base)
	c.New = p.keeper.Essence(p.body, p.extra)
}

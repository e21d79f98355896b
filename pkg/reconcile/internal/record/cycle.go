package record

import (
	"slices"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
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
	// Declared contains the ids of all declared handlers.
	Declared []string
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
// ahead of it.
func (c *Cycle) Reopen(stored Stored) {
	if stored.Open == nil || !c.Reason.IsChange() || !c.Progress.Stored().HasOpen(c.Reason) {
		return
	}
	for id := range stored.Open.At {
		c.Progress.SetAhead(id, c.Reason)
		c.Progress.Refer(c.ParentOf(id), id)
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

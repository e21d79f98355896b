package record

import (
	"context"
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Calls are the calls of one pass that belong to no cycle. They have a record on the object only
// as long as they fail.
type Calls struct {
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

// StoreCalls adds the records of the calls to the patch. The last operator that writes wins:
// a call can be repeated after a restart anyway. It leaves out the handlers whose edits are withheld.
func (k Keeper) StoreCalls(ctx context.Context, c *Calls, body *object.Body, into storage.Patch, isWithheld func(id string) bool) error {
	if c == nil {
		return nil
	}
	records := c.Records()
	for _, id := range slices.Sorted(maps.Keys(records)) {
		if isWithheld(id) {
			continue
		}
		var err error
		if record := records[id]; record != nil {
			err = k.Storages.Progress.Store(ctx, body, into, id, record)
		} else {
			err = k.Storages.Progress.Purge(ctx, body, into, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// HasRecords reports whether the records on the object can change with these calls.
func (c *Calls) HasRecords() bool { return c != nil && len(c.Records()) > 0 }

package record

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Store adds the progress of an open cycle to the patch: changed records, and the states at
// which handlers have ended. It leaves out the handlers whose records another operator has
// advanced according to isOvertaken.
func (k Keeper) Store(ctx context.Context, c *Cycle, body *object.Body, into storage.Patch, r report.Reporter, isOvertaken func(id string) (bool, error)) error {
	kept, err := k.keptOn(ctx, body, c, r)
	if err != nil {
		return err
	}
	dirty := c.Progress.Dirty()
	overtaken := []string(nil)
	for _, id := range dirty {
		theirs, err := isOvertaken(id)
		if err != nil {
			return err
		}
		if theirs {
			overtaken = append(overtaken, id)
		}
	}
	open := c.withEnds(kept, body.ResourceVersion(), overtaken)
	for _, id := range dirty {
		if slices.Contains(overtaken, id) {
			continue
		}
		if err := k.putRecord(ctx, body, into, id, &c.Progress.Load(id).Record); err != nil {
			return err
		}
	}
	if err := k.replaceStale(ctx, c, kept, body, into); err != nil {
		return err
	}
	if c.Reason == cause.Delete && len(dirty) > 0 {
		return k.purgeSuperseded(ctx, c, dirty, body, into)
	}
	return k.storeCycle(ctx, open, body, into)
}

// purgeSuperseded adds the removal of the records of the cycle that a deletion has ended to the first write of the
// deletion. If they were left, an operator of Kopf that takes over would remove them later, together with those of
// the deletion handlers that have ended, and call these again.
func (k Keeper) purgeSuperseded(ctx context.Context, c *Cycle, written []string, body *object.Body, into storage.Patch) error {
	keep := func(id string, r *storage.Record) bool {
		return r == nil || r.Purpose == cause.Delete || r.Purpose == "" || slices.Contains(written, id)
	}
	// The annotation of the cycle remains until the end. Without records, it has no effect. Where the records are in the
	// status, it is written before them, and tells meanwhile that the deletion is still that of this pass.
	return k.purgeRecords(ctx, c, body, into, keep)
}

// storeCycle adds the open cycle to the patch, if there is one.
func (k Keeper) storeCycle(ctx context.Context, open *storage.Cycle, body *object.Body, into storage.Patch) error {
	if open == nil {
		return nil
	}
	return k.putCycle(ctx, body, into, open)
}

// Purge adds the removal of all records of the cycle to the patch.
func (k Keeper) Purge(ctx context.Context, c *Cycle, body *object.Body, into storage.Patch) error {
	if err := k.purgeRecords(ctx, c, body, into, func(string, *storage.Record) bool { return false }); err != nil {
		return err
	}
	return k.purgeCycle(ctx, body, into)
}

// purgeRecords adds the removal of all records except those to keep. Another operator can have
// added records of sub-handlers since the object was read: without their parents' records,
// they would never be found.
func (k Keeper) purgeRecords(ctx context.Context, c *Cycle, body *object.Body, into storage.Patch, keep func(id string, r *storage.Record) bool) error {
	stored, err := k.storedOn(ctx, c, body)
	if err != nil {
		return err
	}
	for _, id := range stored.IDs() {
		if keep(id, stored.Load(id).Found()) {
			continue
		}
		if err := k.purgeRecord(ctx, body, into, id); err != nil {
			return err
		}
	}
	return nil
}

// storedOn returns the progress of the cycle as it is stored on a version of the object. Records that cannot be read count
// as absent.
func (k Keeper) storedOn(ctx context.Context, c *Cycle, body *object.Body) (*call.Progress, error) {
	if c.Version == body.ResourceVersion() {
		return c.Progress, nil
	}
	var failure error
	stored := call.NewProgress(func(id string) *storage.Record {
		record, err := k.fetchRecord(ctx, body, id)
		broken := (*storage.BrokenError)(nil)
		if !errors.As(err, &broken) {
			failure = errors.Join(failure, err)
		}
		return record
	})
	for _, id := range c.Progress.IDs() {
		stored.Load(id)
	}
	return stored, failure
}

// PurgeTouch adds the removal of what Kopf leaves to the patch.
func (k Keeper) PurgeTouch(body *object.Body, into storage.Patch) {
	if purger, ok := k.Storages.Progress.(storage.TouchPurger); ok {
		purger.PurgeTouch(body, into)
	}
}

// End adds the end of the cycle to the patch: the new base, and the removal of the records. If
// handlers are ahead of the new base, it adds the next cycle.
func (k Keeper) End(ctx context.Context, c *Cycle, body *object.Body, into storage.Patch, r report.Reporter) error {
	kept, err := k.keptOn(ctx, body, c, r)
	if err != nil {
		return err
	}
	e := c.end(kept, body.ResourceVersion())
	c.HasNext = e.next != nil
	c.Settled = !c.HasNext && object.Equal(e.base, c.New)
	isOfNext := func(id string, _ *storage.Record) bool { return e.records[id] != nil }
	if err := k.purgeRecords(ctx, c, body, into, isOfNext); err != nil {
		return err
	}
	if e.next == nil {
		if err := k.purgeCycle(ctx, body, into); err != nil {
			return err
		}
	}
	if c.Reason != cause.Delete && !object.Equal(c.Old, e.base) {
		if err := k.storeBase(ctx, body, into, e.base, r); err != nil {
			return err
		}
	}

	// The records of the next cycle, if there is one, say which handlers are ahead of the base at its first state. If they
	// are written separately, the cycle itself says so, too.
	isSplit := k.isSplit()
	for id, record := range e.records {
		if isSplit && record.Finished() {
			if e.next.At == nil {
				e.next.At = map[string]int{}
			}
			e.next.At[id] = first
		}
		if err := k.putRecord(ctx, body, into, id, record); err != nil {
			return err
		}
	}
	return k.storeCycle(ctx, e.next, body, into)
}

// storeBase stores the handled essence, and reports once per object if only hashes of it can
// be stored.
func (k Keeper) storeBase(ctx context.Context, body *object.Body, into storage.Patch, essence object.Essence, r report.Reporter) error {
	if hasher, ok := k.Storages.DiffBase.(storage.Hasher); ok {
		reason := hasher.Hashes(body, into, essence)
		if reason != storage.NotHashed {
			r.WhenWritten(func() {
				if r.Object.First("hashed") {
					r.Log.Info("Only hashes of the handled state are stored: changes are detected, but old values are unknown, except for short ones, and Kopf cannot take over this object again.", "reason", reason)
				}
			})
		}
	}
	return k.putBase(ctx, body, into, essence)
}

// RunOf returns the id of the record of a timer with a schedule: the last run that has ended. It is another one than
// that of a handler of changes with the same id.
func RunOf(id string) string { return id + "/schedule" }

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
			err = k.putRecord(ctx, body, into, id, record)
		} else {
			err = k.purgeRecord(ctx, body, into, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// The records and the cycle that they belong to can be split: the records are in the status, while the
// base and the open cycle are in annotations. If the status is a subresource, it takes two writes to end a
// cycle, and the operator can die between them:
//
//	1. the annotations: the new base, and the next cycle if handlers are ahead of it
//	2. the status:      the records of the cycle are removed, those of the next one are added
//
// After the first one, the records are stale: their token is not that of the open cycle. They
// do not count, because their handlers have not seen what has changed since the new base. Those
// that are ahead of it are in the next cycle itself.

// markStale marks the records that remain of a cycle that has ended.
func (k Keeper) markStale(ctx context.Context, body *object.Body, progress *call.Progress, r report.Reporter) error {
	if !progress.Stored().HasTokens() || !k.isSplit() {
		return nil
	}
	open, err := k.fetchCycle(ctx, body)
	switch {
	case err != nil:
		return ignoreUnreadable(body, err, r)
	case open == nil:
		progress.MarkStale("")
	case open.Token != "":
		progress.MarkStale(open.Token)
	}
	return nil
}

// replaceStale adds the second of the two writes to a patch if it is missing still. The records
// of handlers that have been called since are in the patch.
func (k Keeper) replaceStale(ctx context.Context, c *Cycle, kept *storage.Cycle, body *object.Body, into storage.Patch) error {
	stale := c.Progress.Stored().Stale()
	if len(stale) == 0 {
		return nil
	}
	called := c.Progress.Dirty()
	for _, id := range stale {
		if slices.Contains(called, id) {
			continue
		}
		if err := k.purgeRecord(ctx, body, into, id); err != nil {
			return err
		}
	}
	if kept == nil {
		return nil
	}
	e := ending{next: &storage.Cycle{Token: kept.Token}, records: map[string]*storage.Record{}}
	for id, index := range kept.At {
		top := c.TopOf(id)
		if top != "" {
			c.carryOver(&e, id, top, index)
		}
	}
	for _, id := range kept.Again {
		top := c.TopOf(id)
		if top != "" {
			c.repeat(&e, id, top)
		}
	}
	for id, r := range e.records {
		if slices.Contains(called, id) {
			continue
		}
		if err := k.putRecord(ctx, body, into, id, r); err != nil {
			return err
		}
	}
	return nil
}

// isSplit reports whether records are stored in the status, and the cycle is not.
func (k Keeper) isSplit() bool {
	isInStatus := func(each any) bool {
		in, ok := each.(storage.InStatus)
		return ok && in.StoresInStatus()
	}
	return isInStatus(k.Storages.Progress) && k.cycles() != nil && !isInStatus(k.cycles())
}

package record

import (
	"context"
	"errors"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/storage"
)

// EndedAt returns the states at which handlers have ended in the open cycle, if they differ from that of the pass.
func EndedAt(ctx context.Context, k Keeper, c *Cycle, body *object.Body, r report.Reporter) (map[string]object.Essence, error) {
	if !c.Reason.IsChange() {
		return nil, nil
	}
	kept, err := k.kept(ctx, body, r, func() (*call.Progress, error) { return c.Progress, nil })
	if err != nil || kept == nil {
		return nil, err
	}
	states := map[string]object.Essence{}
	for _, id := range c.Progress.IDs() {
		state := kept.First
		if i := position(kept, id); i >= 0 && i < len(kept.States) {
			state = kept.States[i]
		}
		if c.hasEnded(id) && !object.Equal(state, c.New) {
			states[id] = state
		}
	}
	return states, nil
}

// kept returns the open cycle as it is stored on the object. It returns nil if none is
// stored, or if it belongs to a cycle that has ended: an operator of Kopf does not know it, and
// leaves it behind.
func (k Keeper) kept(ctx context.Context, body *object.Body, r report.Reporter, progressOf func() (*call.Progress, error)) (*storage.Cycle, error) {
	storages, ok := k.Storages.DiffBase.(storage.CycleBase)
	if !ok {
		return nil, nil
	}
	kept, err := storages.FetchCycle(ctx, body)
	if err := ignoreUnreadable(body, err, r); err != nil || kept == nil {
		return nil, err
	}
	progress, err := progressOf()
	if err != nil {
		return nil, err
	}
	isOpen := progress.Stored().HasToken(kept.Token)
	if kept.Token == "" {
		isOpen = progress.Stored().HasStartedBy(kept.Since)
	}
	if !isOpen {
		return nil, nil
	}
	kept.First = k.clear(kept.First)
	for i, state := range kept.States {
		kept.States[i] = k.clear(state)
	}
	return kept, nil
}

// keptOn returns the open cycle on a version that others may have written.
func (k Keeper) keptOn(ctx context.Context, body *object.Body, c *Cycle, r report.Reporter) (*storage.Cycle, error) {
	if !c.Reason.IsChange() {
		return nil, nil
	}
	return k.kept(ctx, body, r, func() (*call.Progress, error) { return k.Progress(ctx, body, c.Progress.IDs(), r) })
}

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
		if err := k.Storages.Progress.Store(ctx, body, into, id, &c.Progress.Load(id).Record); err != nil {
			return err
		}
	}
	if err := k.replaceLeftovers(ctx, c, kept, body, into); err != nil {
		return err
	}
	return k.storeCycle(ctx, open, body, into)
}

// storeCycle adds the open cycle to the patch, if there is one.
func (k Keeper) storeCycle(ctx context.Context, open *storage.Cycle, body *object.Body, into storage.Patch) error {
	storages, ok := k.Storages.DiffBase.(storage.CycleBase)
	if !ok || open == nil {
		return nil
	}
	return storages.StoreCycle(ctx, body, into, open)
}

// Purge adds the removal of all records of the cycle to the patch.
func (k Keeper) Purge(ctx context.Context, c *Cycle, body *object.Body, into storage.Patch) error {
	if err := k.purgeRecords(ctx, c, body, into, nil); err != nil {
		return err
	}
	return k.purgeCycle(ctx, body, into)
}

// purgeRecords adds the removal of all records except those to keep. Another operator can have
// added records of sub-handlers since the object was read: without their parents' records,
// nobody would find them.
func (k Keeper) purgeRecords(ctx context.Context, c *Cycle, body *object.Body, into storage.Patch, keep map[string]*storage.Record) error {
	var failure error
	stored := call.NewProgress(func(id string) *storage.Record {
		record, err := k.Storages.Progress.Fetch(ctx, body, id)
		if broken := (*storage.BrokenError)(nil); !errors.As(err, &broken) {
			failure = errors.Join(failure, err)
		}
		return record
	})
	for _, id := range c.Progress.IDs() {
		stored.Load(id)
	}
	if failure != nil {
		return failure
	}
	for _, id := range stored.IDs() {
		if keep[id] != nil {
			continue
		}
		if err := k.Storages.Progress.Purge(ctx, body, into, id); err != nil {
			return err
		}
	}
	return nil
}

func (k Keeper) purgeCycle(ctx context.Context, body *object.Body, into storage.Patch) error {
	if storages, ok := k.Storages.DiffBase.(storage.CycleBase); ok {
		return storages.PurgeCycle(ctx, body, into)
	}
	return nil
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
	if err := k.purgeRecords(ctx, c, body, into, e.records); err != nil {
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
	return k.storeNext(ctx, e, body, into)
}

// storeNext adds the next cycle to the patch, if there is one.
func (k Keeper) storeNext(ctx context.Context, e ending, body *object.Body, into storage.Patch) error {
	if e.next == nil {
		return nil
	}
	switch apart, err := k.areApart(ctx, body); {
	case err != nil:
		return err
	case apart:
		e.noteFirst()
	}
	for id, r := range e.records {
		if err := k.Storages.Progress.Store(ctx, body, into, id, r); err != nil {
			return err
		}
	}
	return k.storeCycle(ctx, e.next, body, into)
}

// storeBase stores the handled essence, and reports once per object if only hashes of it can
// be stored.
func (k Keeper) storeBase(ctx context.Context, body *object.Body, into storage.Patch, essence object.Essence, r report.Reporter) error {
	if hasher, ok := k.Storages.DiffBase.(storage.Hasher); ok {
		if reason := hasher.Hashes(body, into, essence); reason != storage.NotHashed {
			r.WhenWritten(func() {
				if r.Object.First("hashed") {
					r.Log.Info("Only hashes of the handled state are stored: changes are detected, but old values are unknown, except for short ones, and Kopf cannot take over this object again.", "reason", reason)
				}
			})
		}
	}
	return k.Storages.DiffBase.Store(ctx, body, into, essence)
}

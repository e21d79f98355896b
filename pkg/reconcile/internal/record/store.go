package record

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Store adds the progress of an open cycle to the patch: changed records, and the essence
// from the start of the cycle. It leaves out records that another operator has advanced
// according to overtaken, and then also the essence.
func (k Keeper) Store(ctx context.Context, c *Cycle, body *object.Body, into storage.Patch, overtaken func(id string) (bool, error)) error {
	stands, dirty := false, c.Progress.Dirty()
	if len(dirty) == 0 && !c.Progress.HasOpen(c.Reason) {
		return nil // no handler was called yet, so the cycle has not begun
	}
	for _, id := range dirty {
		theirs, err := overtaken(id)
		stands = stands || theirs
		if err == nil && !theirs {
			err = k.Storages.Progress.Store(ctx, body, into, id, &c.Progress.Load(id).Record)
		}
		if err != nil {
			return err
		}
	}
	if stands {
		return nil
	}
	return k.storeFirst(ctx, c, body, into)
}

// Purge adds the removal of all records of the cycle to the patch.
func (k Keeper) Purge(ctx context.Context, c *Cycle, body *object.Body, into storage.Patch) error {
	for _, id := range c.Progress.IDs() {
		if err := k.Storages.Progress.Purge(ctx, body, into, id); err != nil {
			return err
		}
	}
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

// End adds the end of the cycle to the patch: its records are removed, and the essence of its
// first pass becomes the base.
func (k Keeper) End(ctx context.Context, c *Cycle, body *object.Body, into storage.Patch, r report.Reporter) error {
	if err := k.Purge(ctx, c, body, into); err != nil || !c.hasNewBase() {
		return err
	}
	return k.storeBase(ctx, body, into, c.First, r)
}

// storeBase stores the handled essence, and reports once per object if only hashes of it can
// be stored.
func (k Keeper) storeBase(ctx context.Context, body *object.Body, into storage.Patch, essence object.Essence, r report.Reporter) error {
	if hasher, ok := k.Storages.DiffBase.(storage.Hasher); ok {
		if reason := hasher.Hashes(body, into, essence); reason != storage.NotHashed && r.Object.First("hashed") {
			r.Log.Info("Only hashes of the handled state are stored: changes are detected, but old values are unknown, and Kopf cannot take over this object again.", "reason", reason)
		}
	}
	return k.Storages.DiffBase.Store(ctx, body, into, essence)
}

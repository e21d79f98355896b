package record

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// The storages can be code of users that waits for a database, so all their methods with a context are called here. A
// pass lends its permit meanwhile.

func (k Keeper) fetchBase(ctx context.Context, body *object.Body) (base object.Essence, err error) {
	call.Lend(ctx, func() { base, err = k.Storages.DiffBase.Fetch(ctx, body) })
	return base, err
}

func (k Keeper) putBase(ctx context.Context, body *object.Body, into storage.Patch, essence object.Essence) (err error) {
	call.Lend(ctx, func() { err = k.Storages.DiffBase.Store(ctx, body, into, essence) })
	return err
}

func (k Keeper) fetchCycle(ctx context.Context, body *object.Body) (open *storage.Cycle, err error) {
	if cycles := k.cycles(); cycles != nil {
		call.Lend(ctx, func() { open, err = cycles.FetchCycle(ctx, body) })
	}
	return open, err
}

func (k Keeper) putCycle(ctx context.Context, body *object.Body, into storage.Patch, open *storage.Cycle) (err error) {
	if cycles := k.cycles(); cycles != nil {
		call.Lend(ctx, func() { err = cycles.StoreCycle(ctx, body, into, open) })
	}
	return err
}

func (k Keeper) purgeCycle(ctx context.Context, body *object.Body, into storage.Patch) (err error) {
	if cycles := k.cycles(); cycles != nil {
		call.Lend(ctx, func() { err = cycles.PurgeCycle(ctx, body, into) })
	}
	return err
}

func (k Keeper) fetchRecord(ctx context.Context, body *object.Body, id string) (record *storage.Record, err error) {
	call.Lend(ctx, func() { record, err = k.Storages.Progress.Fetch(ctx, body, id) })
	return record, err
}

func (k Keeper) putRecord(ctx context.Context, body *object.Body, into storage.Patch, id string, record *storage.Record) (err error) {
	call.Lend(ctx, func() { err = k.Storages.Progress.Store(ctx, body, into, id, record) })
	return err
}

func (k Keeper) purgeRecord(ctx context.Context, body *object.Body, into storage.Patch, id string) (err error) {
	call.Lend(ctx, func() { err = k.Storages.Progress.Purge(ctx, body, into, id) })
	return err
}

// cycles returns the storage of open cycles, or nil if the storage of the base is none.
func (k Keeper) cycles() storage.CycleBase {
	cycles, _ := k.Storages.DiffBase.(storage.CycleBase)
	return cycles
}

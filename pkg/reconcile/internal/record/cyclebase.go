package record

import (
	"context"
	"maps"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/storage"
)

// sinceKey is the key for the time of a cycle's first pass, within the essence of that pass.
// An operator of Kopf does not know this key, and leaves the essence behind when it finishes
// the cycle: all records of a later cycle are newer.
const sinceKey = "kopf-cycle-since"

// First returns the essence of the first pass of the open cycle. It returns nil if none is
// stored, or if it belongs to a cycle that has ended.
func (k Keeper) First(ctx context.Context, body *object.Body, progress *execution.Progress, r report.Reporter) (object.Essence, error) {
	storages, ok := k.Storages.DiffBase.(storage.CycleBase)
	if !ok {
		return nil, nil
	}
	kept, err := storages.FetchCycle(ctx, body)
	if err := ignoreUnreadable(body, err, r); err != nil || kept == nil {
		return nil, err
	}
	text, _ := kept[sinceKey].(string)
	// Without a time, it comes from elsewhere: the zero time is older than all records.
	since, _ := time.Parse(time.RFC3339Nano, text)
	if !progress.HasStartedBy(since) {
		return nil, nil
	}
	first := maps.Clone(kept)
	delete(first, sinceKey)
	return k.clear(first), nil
}

// storeFirst stores the essence of the first pass of a cycle that stays open.
func (k Keeper) storeFirst(ctx context.Context, c *Cycle, body *object.Body, into storage.Patch) error {
	storages, ok := k.Storages.DiffBase.(storage.CycleBase)
	if !ok || c.Resumed || (c.Reason != cause.Create && c.Reason != cause.Update) {
		return nil
	}
	first := maps.Clone(c.First)
	first[sinceKey] = time.Now().UTC().Format(time.RFC3339Nano)
	return storages.StoreCycle(ctx, body, into, first)
}

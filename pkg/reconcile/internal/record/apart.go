package record

import (
	"context"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/storage"
)

// The records can be apart from the cycle that they belong to: in the status, while the base and
// the open cycle are in annotations. If the status is a subresource, it takes two writes to end a
// cycle, and the operator can die between them:
//
//	1. the annotations: the new base, and the next cycle if handlers are ahead of it
//	2. the status:      the records of the cycle are removed, those of the next one are added
//
// After the first one, the records are left over: their token is not that of the open cycle. They
// do not count, because their handlers have not seen what has changed since the new base. Those
// that are ahead of it are in the next cycle itself.

// leaveOver sets the records aside that are left over from a cycle that has ended.
func (k Keeper) leaveOver(ctx context.Context, body *object.Body, progress *call.Progress, r report.Reporter) error {
	if !progress.Stored().HasTokens() {
		return nil
	}
	if apart, err := k.areApart(ctx, body); !apart {
		return err
	}
	open, err := k.cycles().FetchCycle(ctx, body)
	switch {
	case err != nil:
		return ignoreUnreadable(body, err, r)
	case open == nil:
		progress.MarkLeftovers("")
	case open.Token != "":
		progress.MarkLeftovers(open.Token)
	}
	return nil
}

// replaceLeftovers adds the second of the two writes to a patch if it is missing still. The records
// of handlers that have been called since are in the patch.
func (k Keeper) replaceLeftovers(ctx context.Context, c *Cycle, kept *storage.Cycle, body *object.Body, into storage.Patch) error {
	leftovers := c.Progress.Stored().Leftovers()
	if len(leftovers) == 0 {
		return nil
	}
	called := c.Progress.Dirty()
	for _, id := range leftovers {
		if slices.Contains(called, id) {
			continue
		}
		if err := k.Storages.Progress.Purge(ctx, body, into, id); err != nil {
			return err
		}
	}
	if kept == nil {
		return nil
	}
	e := ending{next: &storage.Cycle{Token: kept.Token}, records: map[string]*storage.Record{}}
	for id, index := range kept.At {
		if parent := c.ParentOf(id); parent != "" {
			c.carryOver(&e, id, parent, index)
		}
	}
	for id, r := range e.records {
		if slices.Contains(called, id) {
			continue
		}
		if err := k.Storages.Progress.Store(ctx, body, into, id, r); err != nil {
			return err
		}
	}
	return nil
}

// areApart reports whether records are stored in the status, and the cycle is not.
func (k Keeper) areApart(ctx context.Context, body *object.Body) (bool, error) {
	cycles := k.cycles()
	if cycles == nil {
		return false, nil
	}
	cycle := storage.Patch{}
	record := storage.Patch{}
	if err := k.Storages.Progress.Store(ctx, body, record, "any", &storage.Record{}); err != nil {
		return false, err
	}
	inMain, inStatus := patch.SplitStatus(record)
	if len(inMain) > 0 || len(inStatus) == 0 {
		return false, nil
	}
	err := cycles.StoreCycle(ctx, body, cycle, &storage.Cycle{})
	_, inStatus = patch.SplitStatus(cycle)
	return err == nil && len(inStatus) == 0, err
}

// cycles returns the storage of open cycles, or nil if the storage of the base is none.
func (k Keeper) cycles() storage.CycleBase {
	cycles, _ := k.Storages.DiffBase.(storage.CycleBase)
	return cycles
}

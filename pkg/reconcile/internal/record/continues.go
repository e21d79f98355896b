package record

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// Continues reports whether a cycle is still open on a version that others may have written: another
// operator, or this one in a write whose response was lost. The base does not tell that alone,
// because it can be the same after the end: a change was taken back, or was handled in two cycles, or
// the next cycle has the same base.
//
// A cycle is known by its token, once a handler has ended in it, and by the times at which its
// handlers began. Without any record, it counts as open.
func Continues(ctx context.Context, k Keeper, c *Cycle, body *object.Body, r report.Reporter) (bool, error) {
	base, _, err := k.Base(ctx, body, r)
	if err != nil || !object.Equal(base, c.Base) {
		return false, err
	}
	if hasToken, err := hasTokenOf(ctx, k, c, body, r); !hasToken {
		return false, err
	}
	return hasRecordsOf(ctx, k, c.Progress, body, r)
}

// hasTokenOf reports whether the open cycle on the object has the token of this one, if it has one.
func hasTokenOf(ctx context.Context, k Keeper, c *Cycle, body *object.Body, r report.Reporter) (bool, error) {
	cycles := k.cycles()
	stored := c.Progress.Stored()
	if cycles == nil || !stored.HasTokens() {
		return true, nil
	}
	open, err := cycles.FetchCycle(ctx, body)
	if err := ignoreUnreadable(body, err, r); err != nil {
		return false, err
	}
	return open != nil && stored.HasToken(open.Token), nil
}

// hasRecordsOf reports whether the object has a record of the cycle, if it had one.
func hasRecordsOf(ctx context.Context, k Keeper, progress *call.Progress, body *object.Body, r report.Reporter) (bool, error) {
	ids := progress.Stored().IDs()
	for _, id := range ids {
		now, err := k.Record(ctx, body, id, r)
		if err != nil {
			return false, err
		}
		state := progress.Load(id)
		if now != nil && (now.Started.Equal(state.Stored().Started) || now.Started.Equal(state.Started)) {
			return true, nil
		}
	}
	return len(ids) == 0, nil
}

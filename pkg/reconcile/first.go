package reconcile

import (
	"context"
	"maps"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// sinceKey is where the time of a cycle's first pass is kept, within the essence
// of that pass. An operator of Kopf does not know what we keep, and leaves it
// behind when it finishes the cycle: the records of a later cycle are all younger
// than this.
const sinceKey = "kopf-cycle-since"

// keepFirst stores the essence of the first pass of a cycle that stays open.
func (p *pass) keepFirst(ctx context.Context, c *cycle, body *object.Body, into storage.Patch) error {
	keeper, ok := p.Settings.Persistence.DiffBase.(storage.CycleBase)
	if !ok || c.resumed || (c.Reason != cause.Create && c.Reason != cause.Update) {
		return nil
	}
	first := maps.Clone(c.first)
	first[sinceKey] = time.Now().UTC().Format(time.RFC3339Nano)
	return keeper.StoreCycle(ctx, body, into, first)
}

// fetchFirst is the essence of the first pass of the cycle that is open; nil if
// it was not kept, or belongs to a cycle that is over.
func (p *pass) fetchFirst(ctx context.Context, c *cycle) (object.Essence, error) {
	keeper, ok := p.Settings.Persistence.DiffBase.(storage.CycleBase)
	if !ok {
		return nil, nil
	}
	kept, err := keeper.FetchCycle(ctx, p.body)
	if err := p.tolerate(p.body, err); err != nil || kept == nil {
		return nil, err
	}
	text, _ := kept[sinceKey].(string)
	// Without a time it is none of ours: it reads as older than everything.
	since, _ := time.Parse(time.RFC3339Nano, text)
	if !c.progress.HasStartedBy(since) {
		return nil, nil
	}
	first := maps.Clone(kept)
	delete(first, sinceKey)
	return first, nil
}

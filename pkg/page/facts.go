package page

import (
	"context"
	"sync"
	"time"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// facts are what is known of the operator as a whole. They are read for many viewers at once.
type facts struct {
	mu    sync.Mutex
	read  time.Time
	last  operatorFacts
	rates rates
}

// operatorFacts are the answers of the commands peers and shards, why the operator does not start, and what it is doing.
type operatorFacts struct {
	Start     *inspect.Plan
	Peers     *inspect.PeerList
	PeersErr  error
	Shards    *inspect.ShardList
	ShardsErr error
	Now       *reconcile.Activity
	NowErr    error
	Rates     rate
}

// factsAge is how old facts can be.
const factsAge = 5 * time.Second

// readFacts returns the facts, which it reads if they are too old.
func (p *Page) readFacts(ctx context.Context) operatorFacts {
	f := &p.facts
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.read) < factsAge {
		return f.last
	}
	c, _ := p.resources.current()
	now := operatorFacts{Start: c.NewPlanOfStart(ctx)}
	now.Peers, now.PeersErr = c.Peers(ctx, "", "")
	if p.options.LeaseNamespace != "" {
		now.Shards, now.ShardsErr = c.Shards(ctx, p.options.LeaseName, p.options.LeaseNamespace)
	}
	if p.options.Running != nil {
		now.Now, now.NowErr = p.options.Running.Activity(ctx, object.Key{}, "")
	}
	if now.NowErr != nil {
		now.Now = nil
	}
	if ctx.Err() != nil { // the answers are not those of the cluster
		return now
	}
	if now.Now != nil && now.Now.Operator != nil {
		now.Rates = f.rates.add(now.Now.At, now.Now.Operator.Totals)
	}
	f.last = now
	f.read = time.Now()
	return now
}

// pauses returns who pauses the operator, or may do so.
func (f operatorFacts) pauses() (texts []string) {
	if f.Peers == nil {
		return nil
	}
	for _, object := range f.Peers.Objects {
		for _, peer := range object.Peers {
			if !peer.Expired && (peer.Freeze || len(peer.PausedBy) > 0) {
				texts = append(texts, object.Object+": "+peer.String()+".")
			}
		}
	}
	return texts
}

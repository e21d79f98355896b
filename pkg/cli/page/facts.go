package page

import (
	"context"
	"sync"
	"time"

	"github.com/kopf-go/kopf/pkg/cli/inspect"
)

// facts are what is known of the operator as a whole. They are read for many viewers at once.
type facts struct {
	mu   sync.Mutex
	read time.Time
	last operatorFacts
}

// operatorFacts are the answers of the commands peers and shards, and why the operator does not start.
type operatorFacts struct {
	Start     *inspect.Plan
	Peers     *inspect.PeerList
	PeersErr  error
	Shards    *inspect.ShardList
	ShardsErr error
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
	c := p.options.Cluster
	now := operatorFacts{Start: c.NewPlanOfStart(ctx)}
	now.Peers, now.PeersErr = c.Peers(ctx, "", "")
	now.Shards, now.ShardsErr = c.Shards(ctx, p.options.LeaseName, p.options.LeaseNamespace)
	if ctx.Err() == nil { // the answers are those of the cluster
		f.last = now
		f.read = time.Now()
	}
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

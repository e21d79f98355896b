package reconcile

import (
	"context"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/shards"
)

// held is a Lease that is never lost. late is one that was not renewed in time.
type (
	held struct{}
	late struct{ held }
)

func (held) Valid() bool { return true }

func (held) Lost() <-chan struct{} { return nil }

func (late) Valid() bool { return false }

// A pass that outlasts a pause has the term in which it has begun: it must not call handlers, or write, as one of the workers that
// follow.
func TestTermsOfEarlierWorkersStayEnded(t *testing.T) {
	l := newLone(t, m{}, func(*registry.Registry) {})
	e := l.engine
	of := &tenure{lease: held{}, holding: t.Context(), kept: t.Context()}
	active, pause := context.WithCancel(t.Context())
	first := of.termIn(&workers{engine: e, active: active})
	pause()
	second := of.termIn(&workers{engine: e, active: t.Context()})
	if !first.isStopping() || first.writes.Err() == nil || second.isStopping() || second.writes.Err() != nil || first.tenure != of || second.tenure != of {
		t.Errorf("got %+v, then %+v", first, second)
	}
}

// A replica calls no handlers for objects that another one may handle.
func TestObjectsAreHandledByTheHolderOfTheirShard(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, test := range map[string]struct {
		tenure *tenure // nil: another replica holds the shard
		wake   time.Duration
		calls  int
	}{
		"it is held":          {&tenure{lease: held{}, holding: t.Context(), kept: t.Context()}, 0, 1},
		"it may be lost":      {&tenure{lease: late{}, holding: t.Context(), kept: t.Context()}, validityPolling, 0},
		"it must be given up": {&tenure{lease: held{}, holding: ended, kept: t.Context()}, 0, 0},
		"another has it":      {nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var j journal
			l := newLone(t, m{}, func(r *registry.Registry) {
				r.Add(handler.Create(selector.New("kopfexamples"), j.waiting(0), handler.ID("create")))
			}, func(c *Config) { c.Division = shards.Division{Number: 2} })
			l.active = t.Context()
			if test.tenure != nil {
				test.tenure.shard = l.engine.Division.Of("ns", "u-1")
				l.engine.tenures.put(test.tenure)
			}
			l.show()
			result, err := l.Reconcile(t.Context(), keyOf("a"))
			l.detached.Wait()
			if err != nil || result.RequeueAfter != test.wake || len(j.ended) != test.calls {
				t.Errorf("got %v, %v, and %d calls", result, err, len(j.ended))
			}
		})
	}
}

// There is nothing to hand over.
func TestObjectsThatAreGoneAreForgottenWhenTheirShardIsGivenUp(t *testing.T) {
	l := newLone(t, m{}, creating, func(c *Config) { c.Division = shards.Division{Number: 2} })
	l.active = t.Context()
	holding, giveUp := context.WithCancel(t.Context())
	of := &tenure{shard: l.engine.Division.Of("ns", "u-1"), lease: held{}, holding: holding, kept: t.Context()}
	l.engine.tenures.put(of)
	l.pending()
	l.forget()
	giveUp()
	if _, err := l.make(l.newPass(l.resource(), keyOf("a"), of.termIn(l.workers))); err != nil || l.engine.objects.has(keyOf("a")) {
		t.Errorf("got %v; the object is known: %t", err, l.engine.objects.has(keyOf("a")))
	}
}

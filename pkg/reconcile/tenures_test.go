package reconcile

import (
	"context"
	"testing"

	"github.com/kopf-go/kopf/internal/registry"
)

// held is a Lease that is never lost.
type held struct{}

func (held) Valid() bool { return true }

func (held) Lost() <-chan struct{} { return nil }

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

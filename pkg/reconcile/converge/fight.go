package converge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// patience is how often a child is restored at once within the window before the operator
// restores it less often.
const (
	patience = 5
	window   = time.Minute
)

// fight is a child that another client keeps changing.
type fight struct {
	rounds int
	last   time.Time
}

// delay returns the pause before the next restoration.
func (f *fight) delay(delays []time.Duration) time.Duration {
	if f == nil || f.rounds <= patience || len(delays) == 0 {
		return 0
	}
	pause := delays[min(f.rounds-patience-1, len(delays)-1)]
	return max(0, time.Until(f.last.Add(pause)))
}

// noteRestoration counts the restorations of a child. It reports whether another client has
// changed the child so often that this must be reported, once.
func (c *Converger) noteRestoration(s *state, key Key) (report bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.fights == nil {
		s.fights = map[Key]*fight{}
	}
	f := s.fights[key]
	if f == nil || time.Since(f.last) > window+f.delay(c.Delays) && f.rounds <= patience || time.Since(f.last) > 2*window+c.longestDelay() {
		f = &fight{}
		s.fights[key] = f
	}
	f.rounds++
	f.last = time.Now()
	return f.rounds == patience+1
}

func (c *Converger) longestDelay() time.Duration {
	if len(c.Delays) == 0 {
		return 0
	}
	return slices.Max(c.Delays)
}

// reportFight reports the fields that another client keeps changing.
func (r *run) reportFight(ctx context.Context, a applied, drift []convergence.DriftedField) {
	if drift == nil { // only for the text
		if u, err := r.api.Get(ctx, a.resource, a.Namespace, a.Name); err == nil {
			drift = r.driftOf(u, a)
		}
	}
	r.Log.Error(fmt.Errorf("the child %s: %s", a.Key, convergence.Fields(drift)),
		"Another client keeps changing a child, so the operator restores it less often. Let only one of them manage the fields.", "manager", r.Manager)
}

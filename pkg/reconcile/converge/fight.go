package converge

import (
	"fmt"
	"slices"
	"time"
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

// isOver reports whether the child was left alone for so long that the next change is the first one
// of another fight.
func (f *fight) isOver(delays []time.Duration) bool {
	quiet := time.Since(f.last)
	return f.rounds <= patience && quiet > window || quiet > 2*window+longest(delays)
}

func longest(delays []time.Duration) time.Duration {
	if len(delays) == 0 {
		return 0
	}
	return slices.Max(delays)
}

// isOpen reports whether the other client was still at it recently.
func (f *fight) isOpen(longestDelay time.Duration) bool {
	return f.rounds > patience && time.Since(f.last) <= window+longestDelay
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
	if f == nil || f.isOver(c.Delays) {
		f = &fight{}
		s.fights[key] = f
	}
	f.rounds++
	f.last = time.Now()
	return f.rounds == patience+1
}

// reportFight reports the fields that another client keeps changing, or that it keeps deleting the
// child.
func (r *run) reportFight(key Key, what string) {
	r.Log.Error(fmt.Errorf("the child %s: %s", key, what),
		"Another client keeps changing a child, so the operator restores it less often. Let only one of them manage the child.", "manager", r.Manager)
}

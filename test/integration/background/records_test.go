package background

import (
	"slices"
	"strings"
	"sync"
)

// runs counts the runs of handlers by handler and object, as in "watch one".
type runs struct {
	mu       sync.Mutex
	begun    map[string]int
	current  map[string]int
	overlaps []string
}

func newRuns() *runs { return &runs{begun: map[string]int{}, current: map[string]int{}} }

// enter records the start of a run. The result records its end.
func (r *runs) enter(name string) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun[name]++
	if r.current[name]++; r.current[name] > 1 {
		r.overlaps = append(r.overlaps, name)
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.current[name]--
	}
}

// count returns the number of started runs, for Eventually.
func (r *runs) count(name string) func() int {
	return func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.begun[name]
	}
}

// running returns the current runs of all handlers with the prefix.
func (r *runs) running(start string) func() int {
	return func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		total := 0
		for name, current := range r.current {
			if strings.HasPrefix(name, start) {
				total += current
			}
		}
		return total
	}
}

func (r *runs) overlapping() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.overlaps)
}

package triggers

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// A change that concerns many objects sets one flag after another, so that it does not hold up
// other changes.
const (
	// spreadPace is the pause between two flags, unless there are so many that all would take
	// longer than spreadLimit.
	spreadPace  = 10 * time.Millisecond
	spreadLimit = 10 * time.Second
	// spreadRound is the least time between two times that the same flag is set, however often
	// something changes.
	spreadRound = time.Second
)

// Spread sets the flags of many objects for a change that concerns all of them: the change of an
// index, for example. It is safe for concurrent use.
type Spread struct {
	changed chan struct{} // with one element: many changes are one

	mu    sync.Mutex
	flags map[object.Key]*Flag
}

// NewSpread returns a Spread without flags, for which Run must be called.
func NewSpread() *Spread {
	return &Spread{changed: make(chan struct{}, 1), flags: map[object.Key]*Flag{}}
}

// Add adds the flag of an object until the returned function is called.
func (s *Spread) Add(key object.Key, flag *Flag) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flags[key] = flag
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.flags[key] == flag {
			delete(s.flags, key)
		}
	}
}

// Set makes Run set all flags. It does not wait, and can be called with locks.
func (s *Spread) Set() {
	select {
	case s.changed <- struct{}{}:
	default: // it was called already, and Run has not taken notice yet
	}
}

// Run sets the flags after each call of Set, one after another, until the context is done.
func (s *Spread) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		}
		began := time.Now()
		keys := s.keys()
		for _, key := range keys {
			if s.set(key) && !sleep.For(ctx, min(spreadPace, spreadLimit/time.Duration(len(keys)))) {
				return
			}
		}
		if !sleep.For(ctx, spreadRound-time.Since(began)) {
			return
		}
	}
}

// set sets the flag of an object if it still has one.
func (s *Spread) set(key object.Key) bool {
	s.mu.Lock()
	flag := s.flags[key]
	s.mu.Unlock()
	if flag != nil {
		flag.Set()
	}
	return flag != nil
}

// keys returns the objects in a fixed order.
func (s *Spread) keys() []object.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]object.Key, 0, len(s.flags))
	for key := range s.flags {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b object.Key) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return keys
}

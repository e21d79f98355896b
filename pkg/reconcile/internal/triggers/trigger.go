package triggers

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Trigger decides when one handler is called for one object. Passes call its methods, except
// IsPending, which must be safe for concurrent use, also with whatever causes the calls.
type Trigger interface {
	// IsPending reports whether there are calls: now, or after a delay.
	IsPending() bool
	// Calls returns the pending calls, in their order. What is called has the options of
	// the handler, and its id, or one below it: "handler/call". The ids differ. An earlier
	// call that has begun and not ended was interrupted: it is pending.
	Calls() []*handler.Declaration
	// Begin is called immediately before a call.
	Begin(id string)
	// End is called after each call that has begun. If again is set, the call stays pending;
	// otherwise it has ended, and is pending only if something has happened since it began.
	End(id string, again bool)
	// Stop ends the trigger: the handler does not match the object anymore, or the object is
	// gone.
	Stop()
}

// Flag is a Trigger with one call, for everything that has happened since the last one. It is
// safe for concurrent use.
type Flag struct {
	handler *handler.Declaration
	enqueue func()
	atStop  func() // nil: nothing

	mu      sync.Mutex
	pending bool
	running bool
}

var _ Trigger = (*Flag)(nil)

// NewFlag returns a Flag that is not set. The function requests a pass over the object. It is
// called without locks.
func NewFlag(d *handler.Declaration, enqueue func()) *Flag {
	return &Flag{handler: d, enqueue: enqueue}
}

// Set makes the handler be called, or once more if it is running. It can be called at any time,
// also in a Follower.
func (f *Flag) Set() {
	f.mu.Lock()
	wasPending := f.pending
	f.pending = true
	f.mu.Unlock()
	if !wasPending {
		f.enqueue()
	}
}

// IsPending implements Trigger.
func (f *Flag) IsPending() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pending || f.running
}

// Calls implements Trigger.
func (f *Flag) Calls() []*handler.Declaration {
	if !f.IsPending() {
		return nil
	}
	return []*handler.Declaration{f.handler}
}

// Begin implements Trigger.
func (f *Flag) Begin(string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = false
	f.running = true
}

// End implements Trigger.
func (f *Flag) End(_ string, again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = f.pending || again
	f.running = false
}

// AtStop lets Stop also call a function: what sets the flag ends then.
func (f *Flag) AtStop(end func()) {
	others := f.atStop
	f.atStop = end
	if others != nil {
		f.atStop = func() {
			end()
			others()
		}
	}
}

// Stop implements Trigger.
func (f *Flag) Stop() {
	if f.atStop != nil {
		f.atStop()
	}
}

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

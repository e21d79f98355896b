package capacity

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Call is a call of a handler.
type Call struct {
	Key object.Key // of the object
	ID  string     // of the handler
	// Limit is the maximum number of calls of the handler, which all have the same Pool. 0
	// is no limit.
	Pool  string
	Limit int
	// Nested is set for a call within another call, which has the slot of the operator.
	Nested bool
}

// Slots limit how many calls of handlers run at the same time: of one handler, and of the
// operator. No resource gets more than its share of the operator's slots, so that others
// find free ones. It is safe for concurrent use.
type Slots struct {
	// Occupied receives when a call begins while no other one runs. It is for one receiver,
	// which must look at the State: the call may have ended.
	Occupied chan struct{}

	total, share int
	wake         func(key object.Key) // requests a pass

	mu      sync.Mutex
	used    usage
	lines   []*resourceLine // with tickets; the first one has the next turn
	tickets map[object.Key][]*ticket
	waiting int
	running list.List // of *Running, the oldest first
}

// usage counts the slots that are taken or reserved.
type usage struct {
	total      int
	byResource map[string]int
	byPool     map[string]int
}

// share is the part of the operator's slots that one resource can take, in percent.
const share = 80

// NewSlots returns the slots of an operator. The function requests a pass over an object for
// which a slot was reserved. It must not block.
func NewSlots(total int, wake func(key object.Key)) *Slots {
	return &Slots{
		total: total, share: max(1, total*share/100), wake: wake,
		used:    usage{byResource: map[string]int{}, byPool: map[string]int{}},
		tickets: map[object.Key][]*ticket{}, Occupied: make(chan struct{}, 1),
	}
}

// Running is a running call.
type Running struct {
	Call  Call
	Began time.Time

	element *list.Element
	warned  bool
}

// CanTake reports whether the call could begin now. Otherwise it waits: it gets a ticket.
func (s *Slots) CanTake(c Call) bool {
	s.mu.Lock()
	keys := s.move(c)
	free := s.isFree(c)
	s.mu.Unlock()
	s.wakeAll(keys)
	return free
}

// Take takes a slot for the call. It returns nil if there is none; then the call waits.
func (s *Slots) Take(c Call) *Running {
	s.mu.Lock()
	keys := s.move(c)
	r := s.take(c)
	s.mu.Unlock()
	s.wakeAll(keys)
	return r
}

// take is Take with the lock held.
func (s *Slots) take(c Call) *Running {
	if !s.isFree(c) {
		return nil
	}
	if t := s.find(c.Key, c.ID); t == nil {
		s.use(c, 1)
	} else {
		if t.state != reserved {
			s.use(c, 1)
		}
		s.discard(t)
	}
	r := &Running{Call: c, Began: time.Now()}
	r.element = s.running.PushBack(r)
	if s.running.Len() == 1 {
		select {
		case s.Occupied <- struct{}{}:
		default: // the former first call is not noticed yet
		}
	}
	return r
}

// Return returns the slot of a call that has ended. The next ticket gets it.
func (s *Slots) Return(r *Running) {
	s.mu.Lock()
	s.running.Remove(r.element)
	s.use(r.Call, -1)
	keys := s.grant()
	s.mu.Unlock()
	s.wakeAll(keys)
}

// isFree reports whether a slot is reserved for the call, or free. No ticket is passed by: if
// a slot is free, no waiting ticket could use it. The lock is held.
func (s *Slots) isFree(c Call) bool {
	t := s.find(c.Key, c.ID)
	if t != nil && t.state == reserved || s.fits(c) {
		return true
	}
	s.wait(t, c)
	return false
}

// fits reports whether there is a free slot. The lock is held.
func (s *Slots) fits(c Call) bool {
	return (c.Nested || s.used.total < s.total && s.used.byResource[c.Key.Resource] < s.share) &&
		(c.Limit == 0 || s.used.byPool[c.Pool] < c.Limit)
}

// use counts a slot as used or as free. The lock is held.
func (s *Slots) use(c Call, by int) {
	if !c.Nested {
		s.used.total += by
		count(s.used.byResource, c.Key.Resource, by)
	}
	if c.Limit > 0 {
		count(s.used.byPool, c.Pool, by)
	}
}

// count changes a count, and keeps no zeros.
func count(counts map[string]int, name string, by int) {
	counts[name] += by
	if counts[name] == 0 {
		delete(counts, name)
	}
}

func (s *Slots) wakeAll(keys []object.Key) {
	for _, key := range keys {
		s.wake(key)
	}
}

// State is the state of the calls of handlers.
type State struct {
	Running int           // calls
	Waiting int           // handlers that wait for a slot
	Longest time.Duration // of the running calls
}

// State returns the current state.
func (s *Slots) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := State{Running: s.running.Len(), Waiting: s.waiting}
	if oldest := s.running.Front(); oldest != nil {
		state.Longest = time.Since(oldest.Value.(*Running).Began) //nolint:errcheck // there is nothing else in it
	}
	return state
}

// Overdue returns the running calls that have taken longer than the limit, each of them once.
func (s *Slots) Overdue(limit time.Duration) (overdue []Running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.running.Front(); e != nil; e = e.Next() {
		r := e.Value.(*Running) //nolint:errcheck // there is nothing else in it
		if time.Since(r.Began) < limit {
			break
		}
		if !r.warned {
			r.warned = true
			overdue = append(overdue, *r)
		}
	}
	return slices.Clip(overdue)
}

// Of returns the running calls for an object, and the handlers that wait for a slot.
func (s *Slots) Of(key object.Key) (running []Running, waits []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.running.Front(); e != nil; e = e.Next() {
		if r := e.Value.(*Running); r.Call.Key == key { //nolint:errcheck // there is nothing else in it
			running = append(running, *r)
		}
	}
	for _, t := range s.tickets[key] {
		if t.state == waiting {
			waits = append(waits, t.call.ID)
		}
	}
	return running, waits
}

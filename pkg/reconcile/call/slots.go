package call

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Claim names the slots that a call of a handler needs.
type Claim struct {
	Key object.Key // of the object
	ID  string     // of the handler
	// Limit is the maximum number of calls of the handler, which all have the same Pool. 0
	// is no limit.
	Pool  string
	Limit int
	// Nested is set for a call within another call, which has the slot of the operator.
	Nested bool
}

// isWithinAnother reports whether the call is a part of another one, and needs no other slot.
func (c Claim) isWithinAnother() bool { return c.Nested && c.Limit == 0 }

// Slots limit how many calls of handlers run at the same time: of one handler, and of the
// operator. No resource gets more than its share of the operator's slots, so that others
// find free ones. It is safe for concurrent use.
type Slots struct {
	// Occupied receives when a call begins while no other one runs. It is for one receiver,
	// which must look at the Usage: the call may have ended.
	Occupied chan struct{}

	total, share int
	wake         func(key object.Key) // requests a pass

	mu      sync.Mutex
	used    taken
	lines   []*resourceLine // with tickets; the first one has the next turn
	tickets map[object.Key][]*ticket
	waiting int
	running list.List // of *Running, the oldest first
}

// taken counts the slots that are taken or reserved.
type taken struct {
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
		used:    taken{byResource: map[string]int{}, byPool: map[string]int{}},
		tickets: map[object.Key][]*ticket{}, Occupied: make(chan struct{}, 1),
	}
}

// Running is a running call.
type Running struct {
	Claim
	Began time.Time

	element *list.Element
	warned  bool
}

// LineUp reports whether the call could begin now. Otherwise it waits: it gets a ticket.
func (s *Slots) LineUp(c Claim) bool {
	s.mu.Lock()
	keys := s.move(c)
	free := s.isFree(c)
	s.mu.Unlock()
	s.wakeAll(keys)
	return free
}

// Take takes a slot for the call. It returns nil if there is none; then the call waits.
func (s *Slots) Take(c Claim) *Running {
	s.mu.Lock()
	keys := s.move(c)
	var r *Running
	if s.isFree(c) {
		t := s.find(c.Key, c.ID)
		if t == nil || t.state != reserved {
			s.use(c, 1)
		}
		if t != nil {
			s.discard(t)
		}
		r = &Running{Claim: c, Began: time.Now()}
		r.element = s.running.PushBack(r)
		if s.running.Len() == 1 {
			select {
			case s.Occupied <- struct{}{}:
			default: // the former first call is not noticed yet
			}
		}
	}
	s.mu.Unlock()
	s.wakeAll(keys)
	return r
}

// Return returns the slot of a call that has ended. The next ticket gets it.
func (s *Slots) Return(r *Running) {
	s.mu.Lock()
	s.running.Remove(r.element)
	s.use(r.Claim, -1)
	keys := s.grant()
	s.mu.Unlock()
	s.wakeAll(keys)
}

// isFree reports whether a slot is reserved for the call, or free. No ticket is passed by: if
// a slot is free, no waiting ticket could use it. Otherwise, the call gets a ticket, or its ticket
// waits again. The lock is held.
func (s *Slots) isFree(c Claim) bool {
	t := s.find(c.Key, c.ID)
	if t != nil && t.state == reserved || s.fits(c) {
		return true
	}
	if t == nil {
		t = &ticket{claim: c, line: s.lineOf(c)}
		t.line.tickets = append(t.line.tickets, t)
		s.tickets[c.Key] = append(s.tickets[c.Key], t)
		s.waiting++
	}
	s.setState(t, waiting)
	t.asked = true
	return false
}

// fits reports whether there is a free slot. The lock is held.
func (s *Slots) fits(c Claim) bool {
	return (c.Nested || s.used.total < s.total && s.used.byResource[c.Key.Resource] < s.share) &&
		(c.Limit == 0 || s.used.byPool[c.Pool] < c.Limit)
}

// use counts a slot as used or as free. The lock is held.
func (s *Slots) use(c Claim, by int) {
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

// Usage is how many calls of handlers run and wait.
type Usage struct {
	Running int           // calls
	Waiting int           // handlers that wait for a slot
	Longest time.Duration // of the running calls
}

// Usage returns how many calls run and wait now.
func (s *Slots) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	usage := Usage{Running: s.running.Len(), Waiting: s.waiting}
	oldest := s.running.Front()
	if oldest != nil {
		usage.Longest = time.Since(oldest.Value.(*Running).Began) //nolint:errcheck // there is nothing else in it
	}
	return usage
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
		if r := e.Value.(*Running); r.Key == key { //nolint:errcheck // there is nothing else in it
			running = append(running, *r)
		}
	}
	for _, t := range s.tickets[key] {
		if t.state == waiting {
			waits = append(waits, t.claim.ID)
		}
	}
	return running, waits
}

// All returns calls that run, and those that wait for a slot, for all objects: the oldest of each, up to a limit.
func (s *Slots) All(limit int) (running []Running, waits []Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.running.Front(); e != nil && len(running) < limit; e = e.Next() {
		running = append(running, *e.Value.(*Running)) //nolint:errcheck // there is nothing else in it
	}
	for _, resource := range s.lines {
		for _, line := range resource.lines {
			for _, t := range line.tickets {
				if t.state == waiting && len(waits) < limit {
					waits = append(waits, t.claim)
				}
			}
		}
	}
	return running, waits
}

// ticket is the place of a call in a line.
type ticket struct {
	claim Claim
	line  *callLine
	state ticketState
	// asked is set if the current pass over the object has asked for the slot.
	asked bool
}

type ticketState uint8

const (
	waiting  ticketState = iota
	reserved             // a slot waits for the next pass
	absent               // the last pass could not use the slot; the ticket keeps its place
)

// resourceLine contains the tickets of a resource: a line for each pool, which take turns.
type resourceLine struct {
	resource string
	lines    []*callLine
}

// callLine contains the tickets for the same slots, in the order of their arrival.
type callLine struct {
	pool    string
	nested  bool
	tickets []*ticket
}

func (s *Slots) setState(t *ticket, state ticketState) {
	if t.state == waiting {
		s.waiting--
	}
	if state == waiting {
		s.waiting++
	}
	t.state = state
}

func (s *Slots) find(key object.Key, id string) *ticket {
	tickets := s.tickets[key]
	i := slices.IndexFunc(tickets, func(t *ticket) bool { return t.claim.ID == id })
	if i >= 0 {
		return tickets[i]
	}
	return nil
}

// move discards the ticket of a handler that waits in another line: a sub-handler can be
// registered in several places, each with another limit. It returns the objects to be
// handled, for which a slot has become free. The lock is held.
func (s *Slots) move(c Claim) (keys []object.Key) {
	t := s.find(c.Key, c.ID)
	if t == nil || t.claim == c {
		return nil
	}
	freed := t.state == reserved
	if freed {
		s.use(t.claim, -1)
	}
	s.discard(t)
	if freed {
		return s.grant()
	}
	return nil
}

func (s *Slots) lineOf(c Claim) *callLine {
	i := slices.IndexFunc(s.lines, func(r *resourceLine) bool { return r.resource == c.Key.Resource })
	if i < 0 {
		i = len(s.lines)
		s.lines = append(s.lines, &resourceLine{resource: c.Key.Resource})
	}
	r := s.lines[i]
	i = slices.IndexFunc(r.lines, func(l *callLine) bool { return l.pool == c.Pool && l.nested == c.Nested })
	if i < 0 {
		i = len(r.lines)
		r.lines = append(r.lines, &callLine{pool: c.Pool, nested: c.Nested})
	}
	return r.lines[i]
}

// grant reserves the free slots for tickets, and returns the objects to be handled. The lock
// is held.
func (s *Slots) grant() (keys []object.Key) {
	for {
		i := slices.IndexFunc(s.lines, func(r *resourceLine) bool { return s.grantOne(r, &keys) })
		if i < 0 {
			return keys
		}
		s.lines = rotate(s.lines, i)
	}
}

// grantOne reserves a slot for a ticket of a resource.
func (s *Slots) grantOne(r *resourceLine, keys *[]object.Key) bool {
	for i, l := range r.lines {
		next := slices.IndexFunc(l.tickets, func(t *ticket) bool { return t.state == waiting })
		if next < 0 || !s.fits(l.tickets[next].claim) {
			continue
		}
		t := l.tickets[next]
		s.setState(t, reserved)
		s.use(t.claim, 1)
		*keys = append(*keys, t.claim.Key)
		r.lines = rotate(r.lines, i)
		return true
	}
	return false
}

// rotate moves an item to the end.
func rotate[T any](items []T, i int) []T {
	item := items[i]
	return append(slices.Delete(items, i, i+1), item)
}

// discard removes a ticket. The lock is held.
func (s *Slots) discard(t *ticket) {
	if t.state == waiting {
		s.waiting--
	}
	key := t.claim.Key
	s.tickets[key] = without(s.tickets[key], t)
	if len(s.tickets[key]) == 0 {
		delete(s.tickets, key)
	}
	t.line.tickets = without(t.line.tickets, t)
	if len(t.line.tickets) > 0 {
		return
	}
	i := slices.IndexFunc(s.lines, func(r *resourceLine) bool { return r.resource == key.Resource })
	s.lines[i].lines = without(s.lines[i].lines, t.line)
	if len(s.lines[i].lines) == 0 {
		s.lines = slices.Delete(s.lines, i, i+1)
	}
}

func without[T comparable](items []T, item T) []T {
	i := slices.Index(items, item)
	return slices.Delete(items, i, i+1)
}

// Waits reports whether the handler waits for a slot, and HasReserved whether one is reserved
// for it. A pass that asks so will use the slot when it gets one, so its ticket is kept.
func (s *Slots) Waits(key object.Key, id string) bool { return s.hasTicket(key, id, waiting) }

// HasReserved reports whether a slot is reserved for the handler; see Waits.
func (s *Slots) HasReserved(key object.Key, id string) bool { return s.hasTicket(key, id, reserved) }

// hasTicket reports whether the handler has a ticket in a state.
func (s *Slots) hasTicket(key object.Key, id string, state ticketState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(key, id)
	if t == nil {
		return false
	}
	t.asked = t.asked || t.state == waiting
	return t.state == state
}

// EndPass ends a pass over an object. It discards the tickets of handlers that are not due
// anymore, and passes on the reserved slots that the pass has not used.
func (s *Slots) EndPass(key object.Key, isDue func(id string) bool) {
	s.mu.Lock()
	var keys []object.Key
	for _, t := range slices.Clone(s.tickets[key]) {
		due := isDue(t.claim.ID)
		unused := t.state == reserved && !t.asked
		freed := unused || t.state == reserved && !due
		if freed {
			s.use(t.claim, -1)
		}
		t.asked = false
		switch {
		case !due:
			s.discard(t)
		case unused:
			s.setState(t, absent)
		}
		if freed {
			keys = append(keys, s.grant()...)
		}
	}
	s.mu.Unlock()
	s.wakeAll(keys)
}

// Clear discards all tickets, when passes end for a while.
func (s *Slots) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tickets := range s.tickets {
		for _, t := range slices.Clone(tickets) {
			if t.state == reserved {
				s.use(t.claim, -1)
			}
			s.discard(t)
		}
	}
}

package capacity

import (
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// ticket is the place of a call in a line.
type ticket struct {
	call  Call
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

// wait gives a call a ticket, or lets its ticket wait again. The lock is held.
func (s *Slots) wait(t *ticket, c Call) {
	if t == nil {
		t = &ticket{call: c, line: s.lineOf(c)}
		t.line.tickets = append(t.line.tickets, t)
		s.tickets[c.Key] = append(s.tickets[c.Key], t)
		s.waiting++
	}
	s.setState(t, waiting)
	t.asked = true
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
	if i := slices.IndexFunc(tickets, func(t *ticket) bool { return t.call.ID == id }); i >= 0 {
		return tickets[i]
	}
	return nil
}

// move discards the ticket of a handler that waits in another line: a sub-handler can be
// registered in several places, each with a limit of its own. It returns the objects to be
// handled, for which a slot has become free. The lock is held.
func (s *Slots) move(c Call) (keys []object.Key) {
	t := s.find(c.Key, c.ID)
	if t == nil || t.call == c {
		return nil
	}
	freed := t.state == reserved
	if freed {
		s.use(t.call, -1)
	}
	s.discard(t)
	if freed {
		return s.grant()
	}
	return nil
}

func (s *Slots) lineOf(c Call) *callLine {
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
		if next < 0 || !s.fits(l.tickets[next].call) {
			continue
		}
		t := l.tickets[next]
		s.setState(t, reserved)
		s.use(t.call, 1)
		*keys = append(*keys, t.call.Key)
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
	key := t.call.Key
	s.tickets[key] = without(s.tickets[key], t)
	if len(s.tickets[key]) == 0 {
		delete(s.tickets, key)
	}
	t.line.tickets = without(t.line.tickets, t)
	if len(t.line.tickets) == 0 {
		s.removeLine(key.Resource, t.line)
	}
}

func (s *Slots) removeLine(resource string, l *callLine) {
	i := slices.IndexFunc(s.lines, func(r *resourceLine) bool { return r.resource == resource })
	s.lines[i].lines = without(s.lines[i].lines, l)
	if len(s.lines[i].lines) == 0 {
		s.lines = slices.Delete(s.lines, i, i+1)
	}
}

func without[T comparable](items []T, item T) []T {
	i := slices.Index(items, item)
	return slices.Delete(items, i, i+1)
}

// Waits reports whether the handler waits for a slot, and HasReserved whether one is reserved
// for it. A pass that asks so will use the slot when it gets one.
func (s *Slots) Waits(key object.Key, id string) bool { return s.ask(key, id, waiting) }

// HasReserved reports whether a slot is reserved for the handler; see Waits.
func (s *Slots) HasReserved(key object.Key, id string) bool { return s.ask(key, id, reserved) }

func (s *Slots) ask(key object.Key, id string, state ticketState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(key, id)
	if t == nil {
		return false
	}
	t.asked = t.asked || t.state == waiting
	return t.state == state
}

// Settle ends a pass over an object. It discards the tickets of handlers that are not due
// anymore, and passes on the reserved slots that the pass has not used.
func (s *Slots) Settle(key object.Key, isDue func(id string) bool) {
	s.mu.Lock()
	var keys []object.Key
	for _, t := range slices.Clone(s.tickets[key]) {
		if s.settle(t, isDue(t.call.ID)) {
			keys = append(keys, s.grant()...)
		}
	}
	s.mu.Unlock()
	s.wakeAll(keys)
}

// settle is Settle for one ticket. It reports whether a slot has become free.
func (s *Slots) settle(t *ticket, due bool) (freed bool) {
	unused := t.state == reserved && !t.asked
	freed = unused || t.state == reserved && !due
	if freed {
		s.use(t.call, -1)
	}
	t.asked = false
	switch {
	case !due:
		s.discard(t)
	case unused:
		s.setState(t, absent)
	}
	return freed
}

// Clear discards all tickets, when passes end for a while.
func (s *Slots) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tickets := range s.tickets {
		for _, t := range slices.Clone(tickets) {
			if t.state == reserved {
				s.use(t.call, -1)
			}
			s.discard(t)
		}
	}
}

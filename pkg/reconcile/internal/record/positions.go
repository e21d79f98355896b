package record

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Each handler has a position: the state of the object up to which it has handled all
// changes. In a cycle in which the object changes, the positions differ:
//
//	base ──────── first ──────── states[0] ──────── now
//	 │              │                │
//	 │              │                └ B was retried, and ended here
//	 │              └ A ended here
//	 └ C has not ended yet
//
// All handlers that have not ended are at the base. When all have ended, the base moves to
// the first state, and further as long as no handler misses a change. If handlers are ahead of
// the new base, the next cycle begins with the same write, and they count as ended in it.
// Thus, no handler sees a change twice, and none misses one.

// maxStates is the maximum number of states that are stored after the first one. Handlers
// that end at later states count as ended at the last one, and are called again.
const maxStates = 8

// first is the index of a cycle's first state, in front of its States.
const first = -1

// withEnds returns the open cycle with the handlers that have ended in this pass, or nil if
// none has ended in any pass, or if the cycle is not about a change. It leaves out the handlers
// whose records another operator has advanced. The token is for a cycle that begins now. If the cycle could not be
// read, its records still belong to it, and have its token.
func (c *Cycle) withEnds(kept *storage.Cycle, token string, overtaken []string) *storage.Cycle {
	if !c.Reason.IsChange() {
		return nil
	}
	ended := slices.DeleteFunc(c.Progress.Ended(c.Reason), func(id string) bool { return slices.Contains(overtaken, id) })
	if len(ended) == 0 {
		return kept
	}
	open := &storage.Cycle{Token: cmp.Or(c.Progress.Stored().TokenOf(c.Reason), token), First: c.New}
	if kept != nil {
		copied := *kept
		open = &copied
		open.Token = cmp.Or(kept.Token, token)
		open.States = slices.Clip(kept.States)
		open.At = maps.Clone(kept.At)
		open.Again = slices.Clone(kept.Again)
	}
	own := addState(open, c.New)
	isLater := !object.Equal(c.New, stateAt(open, own))
	for _, id := range ended {
		setPosition(open, id, own)
		open.Again = slices.DeleteFunc(open.Again, func(other string) bool { return other == id })
		if isLater {
			open.Again = withID(open.Again, id)
		}
		if c.Progress.OrdersSubhandlers(id) {
			open.Ordered = withID(open.Ordered, id)
		}
		for _, sub := range c.abandoned(id) {
			setPosition(open, sub, own)
		}
		c.Progress.Load(id).Cycle = open.Token
	}
	return open
}

// abandoned returns the sub-handlers that have ended before, and that their parent does not
// register anymore: they do not hold it back.
func (c *Cycle) abandoned(parent string) []string {
	state := c.Progress.Load(parent)
	if stored := state.Stored(); stored != nil && stored.Retries == state.Retries {
		return nil // it was not called
	}
	return slices.DeleteFunc(slices.Clone(state.Subrefs), func(sub string) bool {
		return c.Progress.IsRegistered(sub) || !c.Progress.Load(sub).Finished()
	})
}

// addState adds a state to the cycle unless it has it, and returns its index. If there are too many, it returns that of the last
// one.
func addState(c *storage.Cycle, state object.Essence) int {
	if object.Equal(state, c.First) {
		return first
	}
	if i := slices.IndexFunc(c.States, func(known object.Essence) bool { return object.Equal(known, state) }); i >= 0 {
		return i
	}
	if len(c.States) < maxStates {
		c.States = append(c.States, state)
	}
	return len(c.States) - 1
}

// stateAt returns the state with an index.
func stateAt(c *storage.Cycle, index int) object.Essence {
	if index == first {
		return c.First
	}
	return c.States[index]
}

// position returns the position of a handler that has ended.
func position(c *storage.Cycle, id string) int {
	if i, isLater := c.At[id]; isLater {
		return i
	}
	return first
}

func setPosition(c *storage.Cycle, id string, i int) {
	if i == first {
		delete(c.At, id)
		return
	}
	if c.At == nil {
		c.At = map[string]int{}
	}
	c.At[id] = i
}

// withID returns the sorted ids with another one. It does not change them.
func withID(ids []string, id string) []string {
	i, isIn := slices.BinarySearch(ids, id)
	if isIn {
		return ids
	}
	return slices.Insert(slices.Clone(ids), i, id)
}

// ending contains what the end of a cycle leaves on the object.
type ending struct {
	base object.Essence
	// next is the next cycle if handlers are ahead of the base, and records are its records.
	next    *storage.Cycle
	records map[string]*storage.Record
}

// end returns the ending of a cycle in which no handler is due anymore. The token is for the
// next cycle.
func (c *Cycle) end(kept *storage.Cycle, token string) ending {
	open := c.withEnds(kept, token, nil)
	if open == nil {
		return ending{base: c.New}
	}
	now := addState(open, c.New)
	e := ending{base: open.First}
	if len(open.States) == 0 && len(open.Again) == 0 {
		return e
	}
	positions, together := c.positions(open, now)
	begin := 0
	for begin < len(open.States) && !c.isAnyDue(positions, begin, e.base, open.States[begin]) {
		e.base = open.States[begin]
		begin++
	}
	c.openNext(&e, open.States, begin, positions, token)
	c.callAgain(&e, open, begin-1, positions, together, token)
	return e
}

// positions returns the positions of all handlers and sub-handlers. Some have not ended, because
// they are not due for the current state. A sub-handler is where its parent has ended. A handler
// whose change was taken back before it was called is at this state, but not ahead of its
// sub-handlers. Any other was not due for the first state either. A handler is called with its
// sub-handlers, so it is not ahead of them. It also returns the handlers of sequences that are called together.
func (c *Cycle) positions(open *storage.Cycle, now int) (positions map[string]int, together []string) {
	positions = map[string]int{}
	var others []string
	for _, id := range c.Progress.IDs() {
		if c.hasEnded(id) {
			positions[id] = position(open, id)
		} else {
			others = append(others, id)
		}
	}
	for _, id := range others {
		switch top := c.TopOf(id); {
		case top == "" || !c.IsDue(top, c.Old, open.First):
			positions[id] = first
		case c.hasEnded(top):
			positions[id] = positions[top]
		default:
			positions[id] = min(now, c.oldestOfSubhandlers(positions, id))
		}
	}
	for _, parent := range open.Ordered {
		together = append(together, c.align(open, positions, c.subhandlersIn(positions, parent))...)
	}
	for _, id := range c.Declared {
		positions[id] = min(positions[id], c.oldestOfSubhandlers(positions, id))
	}
	for _, sequence := range c.Sequences {
		together = append(together, c.align(open, positions, sequence)...)
	}
	return positions, together
}

// align moves handlers back that are ahead of others in their sequence, which has an order (kopf.After,
// kopf.AfterFailure): a sequence handles each change as a whole. Otherwise, its first handlers would be called for
// a change that the last ones have seen already, and nothing would follow them.
//
//	base ──── first ──── now               base ──── first ──── now
//	            │          │                           │
//	            │          └ B, C      ──►              └ A, B, C: the next cycle calls all of them
//	            └ A
//
// It returns those that the next cycle calls, also if the object is back at the first state. Those for which nothing has
// changed stay where they are.
func (c *Cycle) align(open *storage.Cycle, positions map[string]int, sequence []string) (together []string) {
	isDue := func(id string, state object.Essence) bool {
		return c.IsDue(c.TopOf(id), stateAt(open, positions[id]), state)
	}
	isConcerned := func(id string) bool { // by what this cycle or the next one is for others
		return isDue(id, c.New) || slices.ContainsFunc(sequence, func(other string) bool { return isDue(id, stateAt(open, positions[other])) })
	}
	if !slices.ContainsFunc(sequence, func(id string) bool { return isDue(id, c.New) }) {
		return nil
	}
	var at []int
	for _, id := range sequence {
		if isConcerned(id) {
			together = append(together, id)
			at = append(at, positions[id])
		}
	}
	oldest := slices.Min(at)
	if oldest == slices.Max(at) {
		return nil
	}
	for _, id := range together {
		positions[id] = oldest
		for _, sub := range c.subhandlersIn(positions, id) {
			positions[sub] = min(positions[sub], oldest)
		}
	}
	return together
}

// subhandlersIn returns the sub-handlers that have a position, of all levels, in any order.
func (c *Cycle) subhandlersIn(positions map[string]int, parent string) []string {
	var ids []string
	for id := range positions {
		if strings.HasPrefix(id, parent+"/") && c.TopOf(id) == c.TopOf(parent) {
			ids = append(ids, id)
		}
	}
	return ids
}

// hasEnded reports whether a handler has ended in this cycle.
func (c *Cycle) hasEnded(id string) bool {
	state := c.Progress.Load(id)
	return state.Finished() && state.Purpose == c.Reason
}

// oldestOfSubhandlers returns the oldest position of the sub-handlers, of all levels.
func (c *Cycle) oldestOfSubhandlers(positions map[string]int, id string) int {
	oldest := math.MaxInt
	for _, sub := range c.subhandlersIn(positions, id) {
		oldest = min(oldest, positions[sub])
	}
	return oldest
}

// isAnyDue reports whether a handler that has not reached the state must see the change to
// it.
func (c *Cycle) isAnyDue(positions map[string]int, index int, before, after object.Essence) bool {
	return slices.ContainsFunc(c.Declared, func(id string) bool {
		return positions[id] < index && c.IsDue(id, before, after)
	})
}

// openNext adds the next cycle to the ending if handlers are ahead of the base: its first
// state is the next one at which some are.
func (c *Cycle) openNext(e *ending, states []object.Essence, begin int, positions map[string]int, token string) {
	for i, state := range states[begin:] {
		for id, at := range positions {
			top := c.TopOf(id)
			if at != begin+i || top == "" || !c.IsDue(top, e.base, state) {
				continue
			}
			e.begin(token, state)
			c.carryOver(e, id, top, addState(e.next, state))
		}
	}
}

// callAgain adds the handlers to the next cycle that it calls together, and those that have seen a later state than the one
// at which they are now: the base, or a later one. The object may be back at that one, and they have not seen that it is. A
// handler with sub-handlers ahead is called anyway when the base has reached them.
func (c *Cycle) callAgain(e *ending, open *storage.Cycle, base int, positions map[string]int, together []string, token string) {
	hasSeenMore := func(id, top string) bool {
		seen, now := position(open, id), max(base, positions[id])
		isAhead := func(sub string) bool { return positions[sub] > now }
		return seen > now && !slices.ContainsFunc(c.subhandlersIn(positions, id), isAhead) && c.IsDue(top, stateAt(open, seen), stateAt(open, now))
	}
	for _, id := range slices.Sorted(maps.Keys(positions)) {
		top := c.TopOf(id)
		if top == "" || !c.hasEnded(id) {
			continue
		}
		if slices.Contains(together, id) || slices.Contains(open.Again, id) || hasSeenMore(id, top) {
			e.begin(token, e.base)
			e.next.Again = withID(e.next.Again, id)
			c.repeat(e, id, top)
		}
	}
}

// repeat adds the record of a handler that must be called again to the next cycle, unless the handler is ahead of it.
func (c *Cycle) repeat(e *ending, id, top string) {
	if _, isAhead := e.next.At[id]; !isAhead {
		c.addRecord(e, id, top)
	}
}

// begin begins the next cycle unless it has begun.
func (e *ending) begin(token string, state object.Essence) {
	if e.next == nil {
		e.next = &storage.Cycle{Token: token, First: state}
		e.records = map[string]*storage.Record{}
	}
}

// carryOver adds a handler that has ended at a state ahead to the next cycle. To an operator
// that does not know about positions, only those at the first state have ended, and the others
// are called once more.
func (c *Cycle) carryOver(e *ending, id, top string, index int) {
	setPosition(e.next, id, index)
	if index != first {
		c.refer(e, id, top)
		return
	}
	r := c.addRecord(e, id, top)
	state := c.Progress.Load(id)
	r.Stopped = r.Started
	r.Success = !state.Failure
	r.Failure = state.Failure
	r.Message = state.Message
}

// addRecord adds a record of a handler to the next cycle, unless it has one.
func (c *Cycle) addRecord(e *ending, id, top string) *storage.Record {
	c.refer(e, id, top)
	return e.record(id)
}

// refer lets the record of a declared handler refer to that of its sub-handler: it is found through it.
func (c *Cycle) refer(e *ending, id, top string) {
	if id == top {
		return
	}
	r := e.record(top)
	r.Subrefs = append(append(r.Subrefs, id), c.Progress.Load(top).AllSubrefs()...)
	slices.Sort(r.Subrefs)
	r.Subrefs = slices.Compact(r.Subrefs)
}

// record returns the record of a handler in the next cycle.
func (e *ending) record(id string) *storage.Record {
	if e.records[id] == nil {
		now := time.Now().UTC().Truncate(time.Microsecond)
		e.records[id] = &storage.Record{Started: now, Purpose: cause.Update, Cycle: e.next.Token}
	}
	return e.records[id]
}

// TopOf returns the declared handler that a sub-handler belongs to, or a declared handler
// itself. It returns "" if the handler is not declared anymore.
func (c *Cycle) TopOf(id string) (top string) { return call.TopOf(id, c.Declared) }

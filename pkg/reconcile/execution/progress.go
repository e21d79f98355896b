package execution

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/storage"
)

// State is how far one handler is within a cycle.
type State struct {
	storage.Record
	stored      *storage.Record // what the storage holds; nil: nothing
	dirty       bool            // whether the record differs from that
	active      bool            // whether the handler takes part in the cycle
	carriedOver bool            // whether the record was made for another purpose
}

// Stored is the record as the storage holds it; nil if there is none.
func (s *State) Stored() *storage.Record { return s.stored }

// refer makes the record point to that of a sub-handler.
func (s *State) addSubref(id string) {
	if !slices.Contains(s.Subrefs, id) {
		s.Subrefs = append(slices.Clone(s.Subrefs), id)
		slices.Sort(s.Subrefs)
		s.dirty = true
	}
}

// RemainingDelay is how long the handler still has to wait for its next attempt.
func (s *State) RemainingDelay(now time.Time) time.Duration { return max(0, s.Delayed.Sub(now)) }

// Progress is how far the handlers of one object are. It belongs to one pass.
type Progress struct {
	load   func(id string) *storage.Record
	states map[string]*State
}

// NewProgress starts with what the storage has. The function loads a record;
// nil if there is none.
func NewProgress(load func(id string) *storage.Record) *Progress {
	return &Progress{load: load, states: map[string]*State{}}
}

// Load looks a record up, with those of the sub-handlers that it refers to.
func (p *Progress) Load(id string) *State {
	if state, known := p.states[id]; known {
		return state
	}
	state := &State{}
	p.states[id] = state
	if record := p.load(id); record != nil {
		state.Record, state.stored = *record, record
		for _, child := range record.Subrefs {
			p.Load(child)
		}
	}
	return state
}

// Include makes a handler take part in the cycle. It goes on from its record if
// that was made for the same purpose or is to be kept in spite of another one,
// and starts from scratch otherwise.
func (p *Progress) Include(id string, purpose cause.Reason, keep bool) *State {
	state := p.Load(id)
	same := state.Purpose == purpose || state.Purpose == ""
	switch {
	case state.Started.IsZero() || (!same && !keep):
		state.Record = storage.Record{Started: now(), Purpose: purpose}
		state.dirty = true
	case state.Purpose != purpose:
		state.Purpose = purpose
		state.dirty, state.carriedOver = true, true
	}
	state.active = true
	return state
}

// abandon stops to wait for the sub-handlers of a handler that has finished
// without them: nobody would call them any more.
func (p *Progress) abandon(ids []string) {
	for _, id := range ids {
		if state := p.Load(id); !state.Finished() {
			state.active = false
		}
	}
}

// Superseded are the purposes of records that were made for another one, with
// the number of their handlers.
func (p *Progress) Superseded(purpose cause.Reason) map[cause.Reason]int {
	others := map[cause.Reason]int{}
	for _, state := range p.states {
		if state.stored != nil && state.stored.Purpose != "" && state.stored.Purpose != purpose {
			others[state.stored.Purpose]++
		}
	}
	return others
}

// HasOpen tells whether the storage holds any record of the purpose: whether an
// earlier pass has left the cycle unfinished.
func (p *Progress) HasOpen(purpose cause.Reason) bool {
	return p.hasStored(func(r *storage.Record) bool { return r.Purpose == purpose })
}

// HasStartedBy tells whether the storage holds any record that was begun by then.
func (p *Progress) HasStartedBy(then time.Time) bool {
	return p.hasStored(func(r *storage.Record) bool { return !r.Started.After(then) })
}

// HasLeftovers tells whether the storage holds any record that belongs to no change
// any more. Those of resuming handlers do not count: whoever keeps them is about
// to finish them, such as another operator that has just started.
func (p *Progress) HasLeftovers() bool {
	return p.hasStored(func(r *storage.Record) bool { return r.Purpose != cause.Resume })
}

func (p *Progress) hasStored(which func(*storage.Record) bool) bool {
	for _, state := range p.states {
		if state.stored != nil && which(state.stored) {
			return true
		}
	}
	return false
}

// Done tells whether all handlers of the cycle have finished.
func (p *Progress) Done() bool { _, waiting := p.NextDelay(); return !waiting }

// NextDelay is how long it takes until the next handler of the cycle is due; false
// if there is none to wait for.
func (p *Progress) NextDelay() (time.Duration, bool) { return p.nextDelayOf(maps.Keys(p.states)) }

// wake is Wake of some of the handlers.
func (p *Progress) nextDelayOf(ids iter.Seq[string]) (delay time.Duration, waiting bool) {
	for id := range ids {
		state := p.states[id]
		if !state.active || state.Finished() {
			continue
		}
		if remaining := state.RemainingDelay(now()); !waiting || remaining < delay {
			delay, waiting = remaining, true
		}
	}
	return delay, waiting
}

// Counts are the numbers of succeeded and failed handlers of the cycle.
func (p *Progress) Counts() (succeeded, failed int) {
	for _, state := range p.states {
		switch {
		case state.active && state.Success:
			succeeded++
		case state.active && state.Failure:
			failed++
		}
	}
	return succeeded, failed
}

// Dirty are the ids whose records are to be stored, sorted.
func (p *Progress) Dirty() []string {
	return p.idsWhere(func(s *State) bool { return s.dirty && s.active })
}

// Stored are the ids whose records the storage holds, sorted.
func (p *Progress) Stored() []string {
	return p.idsWhere(func(s *State) bool { return s.stored != nil })
}

// IDs are all the ids that are known: those of the declared handlers, and of the
// sub-handlers that have ever been seen. Sorted.
func (p *Progress) IDs() []string { return p.idsWhere(func(*State) bool { return true }) }

// Has tells whether there is a handler of the id.
func (p *Progress) Has(id string) bool { _, known := p.states[id]; return known }

func (p *Progress) idsWhere(which func(*State) bool) []string {
	ids := slices.Sorted(maps.Keys(p.states))
	return slices.DeleteFunc(ids, func(id string) bool { return !which(p.states[id]) })
}

// MarkStored says that the storage now holds the records as they are.
func (p *Progress) MarkStored() {
	for _, state := range p.states {
		if state.active && state.dirty {
			record := state.Record
			state.stored, state.dirty = &record, false
		}
	}
}

// Fail ends a handler that has run, for a reason found later: what it wanted to
// be written was refused.
func (p *Progress) Fail(id string, err error) {
	state := p.Load(id)
	state.finish(false, err.Error())
}

func (s *State) finish(success bool, message string) {
	s.Stopped, s.Delayed = now(), time.Time{}
	s.Success, s.Failure, s.Message = success, !success, message
	s.dirty, s.active = true, true
}

// now is the time in the precision of the persisted records.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

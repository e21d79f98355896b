package execution

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/storage"
)

// State is the progress of one handler within a cycle.
type State struct {
	storage.Record
	stored      *storage.Record // what the storage holds; nil if nothing
	dirty       bool            // the record differs from the stored one
	active      bool            // the handler takes part in the cycle
	carriedOver bool            // the record was made for another purpose
	aside       error           // why the handler is due, but cannot be called; nil if it can
	unstarted   bool            // this pass has made the record, and the handler was not called yet
	waiting     bool            // the handler waits for a slot: another pass calls it
	ahead       bool            // the handler is ahead of the cycle, without a stored record
	registered  bool            // the handler is a sub-handler that its parent has registered in this pass
	leftover    bool            // what is stored belongs to an earlier cycle
	referred    []string        // sub-handlers that a new record must refer to
}

// addSubref makes the record refer to the record of a sub-handler.
func (s *State) addSubref(id string) {
	if !slices.Contains(s.Subrefs, id) {
		s.Subrefs = append(slices.Clone(s.Subrefs), id)
		slices.Sort(s.Subrefs)
		s.dirty = true
	}
}

// RemainingDelay returns how long the handler must wait for its next attempt.
func (s *State) RemainingDelay(now time.Time) time.Duration { return max(0, s.Delayed.Sub(now)) }

// Progress is the progress of the handlers of one object. It belongs to one pass,
// and is not safe for concurrent use.
type Progress struct {
	load   func(id string) *storage.Record
	states map[string]*State

	// leftovers is set if the storage holds records of an earlier cycle. begun is the token of the
	// cycle that has begun since, and has no records yet.
	leftovers bool
	begun     string
}

// NewProgress returns the progress that the storage holds. The function loads the
// record of a handler, or returns nil if there is none.
func NewProgress(load func(id string) *storage.Record) *Progress {
	return &Progress{load: load, states: map[string]*State{}}
}

// Load returns the state of a handler, after loading its record and the records of
// the sub-handlers that it refers to.
func (p *Progress) Load(id string) *State {
	if state, known := p.states[id]; known {
		return state
	}
	state := &State{}
	p.states[id] = state
	if record := p.load(id); record != nil {
		state.Record = *record
		state.stored = record
		for _, child := range record.Subrefs {
			p.Load(child)
		}
	}
	return state
}

// Include adds a handler to the cycle. The handler continues from its record if that
// was made for the same purpose, or if keep is set, and starts from scratch
// otherwise.
func (p *Progress) Include(id string, purpose cause.Reason, keep bool) *State {
	state := p.Load(id)
	same := state.Purpose == purpose || state.Purpose == ""
	switch {
	case state.Started.IsZero() || (!same && !keep):
		state.Record = storage.Record{Started: now(), Purpose: purpose, Subrefs: state.referred}
		state.dirty = true
		state.unstarted = true
	case state.Purpose != purpose:
		state.Purpose = purpose
		state.dirty = true
		state.carriedOver = true
	}
	state.active = true
	return state
}

// SetAside marks a handler that is due, but cannot be called, such as one whose Go type the
// object does not fit. That is not an attempt, so a handler without earlier attempts gets no
// record. The cycle stays open for it, but nothing wakes the object because of it.
func (p *Progress) SetAside(id string, why error) {
	state := p.Load(id)
	state.aside = why
	if !state.isStored() && state.Retries == 0 && !slices.ContainsFunc(state.Subrefs, func(child string) bool { return p.Load(child).hasRecord() }) {
		state.dirty = false
	}
}

// LeaveOut leaves the time since the given one out of the time that counts against the timeout
// of a handler that was called before. The time until its next attempt was due counts.
func (s *State) LeaveOut(since time.Time) {
	if since.Before(s.Delayed) {
		since = s.Delayed
	}
	if left := now().Sub(since); !since.IsZero() && left > 0 && s.isStored() && s.Retries > 0 && !s.Finished() {
		s.Started = s.Started.Add(left)
		s.dirty = true
	}
}

// hasRecord reports whether a record of the handler is stored, or will be.
func (s *State) hasRecord() bool { return s.isStored() || s.dirty }

// WhyAside returns why a handler was set aside, or nil if it was not.
func (p *Progress) WhyAside(id string) error {
	if state := p.states[id]; state != nil {
		return state.aside
	}
	return nil
}

// abandon stops waiting for the sub-handlers of a handler that has finished without
// them: they will not be called again.
func (p *Progress) abandon(ids []string) {
	for _, id := range ids {
		if state := p.Load(id); !state.Finished() {
			state.active = false
		}
	}
}

// Done reports whether all handlers of the cycle have finished.
func (p *Progress) Done() bool {
	for _, state := range p.states {
		if (state.active || state.aside != nil) && !state.Finished() {
			return false
		}
	}
	return true
}

// HasAside reports whether a handler was set aside.
func (p *Progress) HasAside() bool {
	for _, state := range p.states {
		if state.aside != nil {
			return true
		}
	}
	return false
}

// NextDelay returns the time until the next handler of the cycle is due. It reports
// false if no time is known: all handlers have finished, or wait for a slot.
func (p *Progress) NextDelay() (time.Duration, bool) { return p.nextDelayOf(maps.Keys(p.states)) }

// nextDelayOf is NextDelay for some of the handlers.
func (p *Progress) nextDelayOf(ids iter.Seq[string]) (delay time.Duration, known bool) {
	for id := range ids {
		state := p.states[id]
		if !state.active || state.Finished() || state.waiting || state.aside != nil {
			continue
		}
		if remaining := state.RemainingDelay(now()); !known || remaining < delay {
			delay = remaining
			known = true
		}
	}
	return delay, known
}

// Counts returns the numbers of succeeded and failed handlers of the cycle.
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

// Dirty returns the sorted ids of the handlers whose records must be stored.
func (p *Progress) Dirty() []string {
	return p.idsWhere(func(s *State) bool { return s.dirty && s.active })
}

// Ended returns the sorted ids of the handlers that have ended since the storage was read, in
// a cycle of this purpose.
func (p *Progress) Ended(purpose cause.Reason) []string {
	return p.idsWhere(func(s *State) bool {
		return !s.ahead && s.Finished() && s.Purpose == purpose && !(s.isStored() && s.stored.Finished() && s.stored.Purpose == purpose)
	})
}

// Register notes that a parent has registered a sub-handler in this pass, whether or not its
// filters match.
func (p *Progress) Register(id string) { p.Load(id).registered = true }

// IsRegistered reports whether a sub-handler was registered by its parent in this pass.
func (p *Progress) IsRegistered(id string) bool {
	return p.states[id] != nil && p.states[id].registered
}

// IsRetrying reports whether the handler or one of its sub-handlers was called in the cycle of
// this purpose, and must be called again.
func (p *Progress) IsRetrying(id string, purpose cause.Reason) bool {
	isRetrying := func(id string) bool {
		state := p.Load(id)
		return state.Purpose == purpose && state.Retries > 0 && !state.Finished()
	}
	return isRetrying(id) || !p.Load(id).Finished() && slices.ContainsFunc(p.Load(id).Subrefs, isRetrying)
}

// Settle notes that a handler without a stored record is ahead of the cycle: it is not called
// in it. It does nothing if there is a record.
func (p *Progress) Settle(id string, purpose cause.Reason) {
	if state := p.Load(id); !state.isStored() {
		state.Record = storage.Record{Started: now(), Purpose: purpose, Success: true}
		state.ahead = true
	}
}

// Stored returns the records that the storage holds.
func (p *Progress) Stored() Stored { return Stored{p} }

// IDs returns the sorted ids of all handlers in the progress: the declared ones, and
// the sub-handlers that have a record.
func (p *Progress) IDs() []string { return p.idsWhere(func(*State) bool { return true }) }

// Has reports whether there is a handler with the id.
func (p *Progress) Has(id string) bool { _, known := p.states[id]; return known }

// idsWhere returns the sorted ids of the handlers whose state passes the test.
func (p *Progress) idsWhere(test func(*State) bool) []string {
	ids := slices.Sorted(maps.Keys(p.states))
	return slices.DeleteFunc(ids, func(id string) bool { return !test(p.states[id]) })
}

// MarkStored notes that the storage now holds all records as they are.
func (p *Progress) MarkStored() {
	for _, state := range p.states {
		if state.active && state.dirty {
			record := state.Record
			state.stored = &record
			state.leftover = false
			state.dirty = false
		}
	}
}

// Fail fails a handler that has run, for a reason found later: the API server
// rejected its edit.
func (p *Progress) Fail(id string, err error) {
	state := p.Load(id)
	state.finish(false, err.Error())
}

// Revise replaces the outcome of the last attempt of a handler by one that was found later.
// If the handler must be called again, so must the handlers that it is a sub-handler of.
func (p *Progress) Revise(id string, o Outcome) {
	state := p.Load(id)
	state.Retries-- // apply counts the attempt again
	state.reopen()
	state.apply(o)
	if o.Final {
		return
	}
	for _, parent := range p.states {
		if slices.Contains(parent.Subrefs, id) && parent.Finished() {
			parent.reopen()
			parent.Delayed = state.Delayed
		}
	}
}

// reopen makes a finished handler unfinished.
func (s *State) reopen() {
	s.Stopped = time.Time{}
	s.Success = false
	s.Failure = false
	s.Message = ""
	s.dirty = true
	s.active = true
}

// finish ends the handler for good.
func (s *State) finish(success bool, message string) {
	s.Stopped = now()
	s.Delayed = time.Time{}
	s.Success = success
	s.Failure = !success
	s.Message = message
	s.dirty = true
	s.active = true
}

// now returns the current time with the precision of persisted records.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

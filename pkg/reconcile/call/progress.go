package call

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/storage"
)

// State is the progress of one handler within a cycle.
type State struct {
	storage.Record
	stored      *storage.Record   // what the storage holds; nil if nothing
	dirty       bool              // the record differs from the stored one
	active      bool              // the handler takes part in the cycle
	carriedOver bool              // the record was made for another purpose
	misfit      error             // why the handler is due, but cannot be called; nil if it can
	unstarted   bool              // this pass has made the record, and the handler was not called yet
	waiting     bool              // the handler waits for a slot: another pass calls it
	outOfTurn   bool              // the handler waits for the end of others
	follows     map[string]string // why others have failed that the handler follows, by their ids as it declares them
	postponed   time.Time         // the handler must not be called before, for a reason that is not stored
	ahead       bool              // the handler is ahead of the cycle, without a stored record
	again       bool              // the handler has seen a later state than the base
	registered  bool              // the handler is a sub-handler that its parent has registered in this pass
	ordersSubs  bool              // the handler has registered sub-handlers in this pass that follow each other
	stale       bool              // what is stored belongs to an earlier cycle
	referred    []string          // sub-handlers that a new record must refer to
}

// RemainingDelay returns how long the handler must wait for its next attempt.
func (s *State) RemainingDelay(now time.Time) time.Duration {
	return max(0, s.Delayed.Sub(now), s.postponed.Sub(now))
}

// Postpone lets the handler wait until a time, which is not stored. A handler that was not called yet has no record
// meanwhile, so that its time does not run.
func (s *State) Postpone(until time.Time) {
	s.postponed = until
	if s.unstarted && until.After(now()) {
		s.dirty = false
	}
}

// HasEnded reports whether the handler has ended in a cycle with the purpose.
func (s *State) HasEnded(purpose cause.Reason) bool {
	return s.Finished() && (s.Purpose == purpose || s.Purpose == "")
}

// AddSubrefs makes the record refer to the records of sub-handlers.
func (s *State) AddSubrefs(ids ...string) {
	for _, id := range ids {
		if !slices.Contains(s.Subrefs, id) {
			s.Subrefs = slices.Sorted(slices.Values(append(slices.Clip(s.Subrefs), id)))
			s.dirty = true
		}
	}
}

// AllSubrefs returns the ids of the sub-handlers that the record refers to, or will.
func (s *State) AllSubrefs() []string { return append(slices.Clip(s.Subrefs), s.referred...) }

// LeaveOut leaves the time since the given one out of the time that counts against the timeout
// of a handler that was called before. The time until its next attempt was due counts.
func (s *State) LeaveOut(since time.Time) {
	if since.Before(s.Delayed) {
		since = s.Delayed
	}
	left := now().Sub(since)
	if !since.IsZero() && left > 0 && s.isStored() && s.Retries > 0 && !s.Finished() {
		s.Started = s.Started.Add(left)
		s.dirty = true
	}
}

// apply updates the record by the outcome of an attempt.
func (s *State) apply(o Outcome) {
	s.Retries++
	s.dirty = true
	switch {
	case o.Succeeded():
		s.finish(true, "")
	case o.Final:
		s.finish(false, o.Err.Error())
	default:
		s.Delayed = time.Time{}
		s.Message = o.Err.Error()
		if o.Delay > 0 {
			s.Delayed = now().Add(o.Delay)
		}
	}
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

// reopen makes a finished handler unfinished.
func (s *State) reopen() {
	s.Stopped = time.Time{}
	s.Success = false
	s.Failure = false
	s.Message = ""
	s.dirty = true
	s.active = true
}

// wake makes a waiting handler due. That is stored, because another pass may call it: if handlers
// are called one by one, for example.
func (s *State) wake() {
	if !s.Finished() && !s.Delayed.IsZero() {
		s.Delayed = time.Time{}
		s.dirty = true
		s.active = true
	}
}

// now returns the current time with the precision of persisted records.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Progress is the progress of the handlers of one object. It belongs to one pass,
// and is not safe for concurrent use.
type Progress struct {
	load   func(id string) *storage.Record
	states map[string]*State

	// hasStale is set if the storage holds records of an earlier cycle. begun is the token of the
	// cycle that has begun since, and has no records yet.
	hasStale bool
	begun    string
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
	record := p.load(id)
	if record != nil {
		state.Record = *record
		state.stored = record
		for _, child := range record.Subrefs {
			p.Load(child)
		}
	}
	return state
}

// HasRecord reports whether a handler has a record, from before this pass or of it.
func (p *Progress) HasRecord(id string) bool { return !p.Load(id).Started.IsZero() }

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

// SetMisfit marks a handler that is due, but cannot be called, such as one whose Go type the
// object does not fit. That is not an attempt, so a handler without earlier attempts gets no
// record. The cycle stays open for it, but nothing wakes the object because of it.
func (p *Progress) SetMisfit(id string, why error) {
	state := p.Load(id)
	state.misfit = why
	hasRecord := func(child string) bool { return p.Load(child).isStored() || p.Load(child).dirty }
	if !state.isStored() && state.Retries == 0 && !slices.ContainsFunc(state.Subrefs, hasRecord) {
		state.dirty = false
	}
}

// Misfit returns why a handler is due, but cannot be called, or nil if it can.
func (p *Progress) Misfit(id string) error {
	if state := p.states[id]; state != nil {
		return state.misfit
	}
	return nil
}

// HasMisfit reports whether a handler is due, but cannot be called.
func (p *Progress) HasMisfit() bool {
	for _, state := range p.states {
		if state.misfit != nil {
			return true
		}
	}
	return false
}

// SetAhead records that a handler without a stored record is ahead of the cycle: it is not called
// in it. It does nothing if there is a record.
func (p *Progress) SetAhead(id string, purpose cause.Reason) {
	state := p.Load(id)
	if !state.isStored() {
		state.Record = storage.Record{Started: now(), Purpose: purpose, Success: true}
		state.ahead = true
	}
}

// CallAgain records that a handler has seen a later state of the object than the base: it is called in this cycle, also if nothing
// has changed since the base.
func (p *Progress) CallAgain(id string) { p.Load(id).again = true }

// Refer records a sub-handler that is ahead of the cycle: if its declared handler gets a new record, it refers
// to that of the sub-handler, too.
func (p *Progress) Refer(top, id string) {
	if top != "" && top != id {
		state := p.Load(top)
		state.referred = slices.Compact(slices.Sorted(slices.Values(append(slices.Clip(state.referred), id))))
	}
}

// Register records that a parent has registered a sub-handler in this pass, whether or not its
// filters match.
func (p *Progress) Register(id string) { p.Load(id).registered = true }

// IsRegistered reports whether a sub-handler was registered by its parent in this pass.
func (p *Progress) IsRegistered(id string) bool {
	return p.states[id] != nil && p.states[id].registered
}

// OrdersSubhandlers reports whether a handler has registered sub-handlers in this pass that follow each other.
func (p *Progress) OrdersSubhandlers(id string) bool { return p.Load(id).ordersSubs }

// abandon stops waiting for the sub-handlers of a handler that has finished without
// them: they will not be called again.
func (p *Progress) abandon(ids []string) {
	for _, id := range ids {
		state := p.Load(id)
		if !state.Finished() {
			state.active = false
		}
	}
}

// WithdrawUnstarted leaves no record of handlers that were not called: neither while they wait
// for a slot nor if the operator stops.
func (p *Progress) WithdrawUnstarted() {
	for _, state := range p.states {
		if state.unstarted && len(state.Subrefs) == 0 {
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

// Retry makes a waiting handler due, with its waiting sub-handlers and the handlers that it is
// a sub-handler of.
func (p *Progress) Retry(id string) {
	for _, each := range append([]string{id}, p.Load(id).Subrefs...) {
		p.Load(each).wake()
	}
	p.wakeAbove(id)
}

// Rerun lets a handler start from scratch, with its sub-handlers. The handlers that it is a
// sub-handler of become due, because they call it.
func (p *Progress) Rerun(id string, purpose cause.Reason) {
	state := p.Load(id)
	for _, child := range state.Subrefs {
		p.Rerun(child, purpose)
	}
	state.Record = storage.Record{Started: now(), Purpose: purpose, Subrefs: state.Subrefs}
	state.dirty = true
	state.active = true
	p.wakeAbove(id)
}

// Skip ends a handler as if it had succeeded. The handlers that it is a sub-handler of become due,
// because they may have waited only for it.
func (p *Progress) Skip(id string, purpose cause.Reason) {
	state := p.Include(id, purpose, false)
	state.finish(true, "skipped by a request")
	p.abandon(state.Subrefs)
	p.wakeAbove(id)
}

// wakeAbove makes the waiting handlers due that a handler is a sub-handler of.
func (p *Progress) wakeAbove(id string) {
	for _, above := range p.states {
		if slices.Contains(above.Subrefs, id) {
			above.wake()
		}
	}
}

// Done reports whether all handlers of the cycle have finished.
func (p *Progress) Done() bool {
	for _, state := range p.states {
		if (state.active || state.misfit != nil) && !state.Finished() {
			return false
		}
	}
	return true
}

// HasUnfinished reports whether a handler of the cycle will be called again by itself.
func (p *Progress) HasUnfinished() bool {
	for _, state := range p.states {
		if state.active && !state.Finished() && state.misfit == nil {
			return true
		}
	}
	return false
}

// TakesPart reports whether the handler takes part in the cycle.
func (p *Progress) TakesPart(id string) bool { return p.states[id] != nil && p.states[id].active }

// IsOpen reports whether the handler takes part in the cycle and has not finished, or is a
// sub-handler of such a handler.
func (p *Progress) IsOpen(id string) bool {
	state, known := p.states[id]
	if !known || state.Finished() || state.active {
		return known && !state.Finished()
	}
	for _, parent := range p.states {
		if parent.active && !parent.Finished() && slices.Contains(parent.Subrefs, id) {
			return true
		}
	}
	return false
}

// IsRetrying reports whether the handler or one of its sub-handlers was called in the cycle of
// this purpose, or has seen a later state than the base, and must be called again.
func (p *Progress) IsRetrying(id string, purpose cause.Reason) bool {
	isRetrying := func(id string) bool {
		state := p.Load(id)
		return !state.Finished() && (state.again || state.Purpose == purpose && state.Retries > 0)
	}
	return isRetrying(id) || !p.Load(id).Finished() && slices.ContainsFunc(p.Load(id).AllSubrefs(), isRetrying)
}

// WithEarlier adds to the selected handlers those of the declared ones that take part in the cycle although what is left
// of the change does not select them: those that must be called again although their change was taken back, and those
// that have ended and that others follow.
func (p *Progress) WithEarlier(selected, declared registry.Handlers, c *handler.Cause) registry.Handlers {
	selected = append(selected, declared.TakenBack(c, selected, p.IsRetrying)...)
	return append(selected, declared.Followed(selected, func(id string) bool { return p.Load(id).HasEnded(c.Reason) })...)
}

// NextDelay returns the time until the next handler of the cycle is due. It reports
// false if no time is known: all handlers have finished, or wait for a slot.
func (p *Progress) NextDelay() (time.Duration, bool) { return p.nextDelayOf(maps.Keys(p.states)) }

// nextDelayOf is NextDelay for some of the handlers.
func (p *Progress) nextDelayOf(ids iter.Seq[string]) (delay time.Duration, known bool) {
	for id := range ids {
		state := p.states[id]
		if !state.active || state.Finished() || state.waiting || state.outOfTurn || state.misfit != nil {
			continue
		}
		remaining := state.RemainingDelay(now())
		if !known || remaining < delay {
			delay = remaining
			known = true
		}
	}
	return delay, known
}

// Counts returns the numbers of succeeded and failed handlers of the cycle. A handler that was skipped because its turn
// never came is none of them.
func (p *Progress) Counts() (succeeded, failed int) {
	for _, state := range p.states {
		switch {
		case state.isOutOfOrder():
		case state.active && state.Success:
			succeeded++
		case state.active && state.Failure:
			failed++
		}
	}
	return succeeded, failed
}

// Failures returns the messages of the handlers that have failed permanently in the cycle,
// including sub-handlers.
func (p *Progress) Failures() map[string]string {
	var failed map[string]string
	for id, state := range p.states {
		if state.active && state.Failure {
			if failed == nil {
				failed = map[string]string{}
			}
			failed[id] = state.Message
		}
	}
	return failed
}

// Ended returns the sorted ids of the handlers that have ended since the storage was read, in
// a cycle of this purpose.
func (p *Progress) Ended(purpose cause.Reason) []string {
	return p.idsWhere(func(s *State) bool {
		return !s.ahead && s.Finished() && s.Purpose == purpose && !(s.isStored() && s.stored.Finished() && s.stored.Purpose == purpose)
	})
}

// Dirty returns the sorted ids of the handlers whose records must be stored.
func (p *Progress) Dirty() []string {
	return p.idsWhere(func(s *State) bool { return s.dirty && s.active })
}

// MarkStored records that the storage now holds all records as they are.
func (p *Progress) MarkStored() {
	for _, state := range p.states {
		if state.active && state.dirty {
			record := state.Record
			state.stored = &record
			state.stale = false
			state.dirty = false
		}
	}
}

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

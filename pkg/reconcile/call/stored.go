package call

import (
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Stored are the records that the storage holds, without what has happened since they were
// read.
type Stored struct{ progress *Progress }

// Stored returns the records that the storage holds.
func (p *Progress) Stored() Stored { return Stored{p} }

// IDs returns the sorted ids of the handlers that have a record.
func (s Stored) IDs() []string {
	return s.progress.idsWhere((*State).isStored)
}

// Superseded returns the purposes of stored records that were made for another
// purpose than this one, each with its number of handlers.
func (s Stored) Superseded(purpose cause.Reason) map[cause.Reason]int {
	others := map[cause.Reason]int{}
	for _, state := range s.progress.states {
		if state.isStored() && state.stored.Purpose != "" && state.stored.Purpose != purpose {
			others[state.stored.Purpose]++
		}
	}
	return others
}

// HasOpen reports whether the storage holds a record of the purpose, that is, an
// earlier pass left the cycle unfinished.
func (s Stored) HasOpen(purpose cause.Reason) bool {
	return s.progress.begun != "" && purpose == cause.Update || s.has(func(r *storage.Record) bool { return r.Purpose == purpose })
}

// HasStartedBy reports whether the storage holds a record that was started at the
// given time or before.
func (s Stored) HasStartedBy(then time.Time) bool {
	return s.has(func(r *storage.Record) bool { return !r.Started.After(then) })
}

// Since returns when the first handler with a stored record of the purpose was first called. It returns zero if there
// is none.
func (s Stored) Since(purpose cause.Reason) (first time.Time) {
	s.has(func(r *storage.Record) bool {
		if r.Purpose == purpose && !r.Started.IsZero() && (first.IsZero() || r.Started.Before(first)) {
			first = r.Started
		}
		return false
	})
	return first
}

// HasToken reports whether the storage holds a record of a handler that has ended in the
// cycle with this token, or that this cycle carries over, or is about to.
func (s Stored) HasToken(token string) bool {
	return s.progress.begun == token || s.has(func(r *storage.Record) bool { return r.Cycle == token })
}

// HasTokens reports whether a stored record has the token of a cycle, or is about to.
func (s Stored) HasTokens() bool {
	return s.progress.begun != "" || s.has(func(r *storage.Record) bool { return r.Cycle != "" })
}

// TokenOf returns the token of the stored records of the purpose, or "" if none has one.
func (s Stored) TokenOf(purpose cause.Reason) (token string) {
	s.has(func(r *storage.Record) bool {
		if r.Purpose == purpose {
			token = max(token, r.Cycle)
		}
		return false
	})
	return token
}

// HasStale reports whether the storage holds a record that belongs to no change
// anymore. Records of resuming handlers do not count: their owner, such as another
// operator that has just started, is about to finish them.
func (s Stored) HasStale() bool {
	return s.progress.hasStale || s.has(func(r *storage.Record) bool { return r.Purpose != cause.Resume })
}

// Stale returns the sorted ids of the handlers with a record that remains of an
// earlier cycle.
func (s Stored) Stale() []string {
	return s.progress.idsWhere(func(state *State) bool { return state.stale })
}

// has reports whether a stored record passes the test.
func (s Stored) has(test func(*storage.Record) bool) bool {
	for _, state := range s.progress.states {
		if state.isStored() && test(state.stored) {
			return true
		}
	}
	return false
}

// MarkStale marks the records that remain of an earlier cycle, if there are any. Those of ended
// handlers have a token, but not this one, which is that of the open cycle, or empty if there is
// none. The end of the earlier cycle was stored without the removal of its records.
func (p *Progress) MarkStale(token string) {
	if !p.Stored().has(func(r *storage.Record) bool { return r.Cycle != "" && r.Cycle != token }) {
		return
	}
	p.begun = token
	p.hasStale = true
	for _, state := range p.states {
		if state.isStored() && state.stored.Purpose.IsChange() && (state.stored.Cycle != token || token == "") {
			state.Record = storage.Record{}
			state.stale = true
			state.referred = state.stored.Subrefs
		}
	}
}

// Records returns copies of the records of all handlers that were called.
func (p *Progress) Records() map[string]*storage.Record {
	records := map[string]*storage.Record{}
	for id, state := range p.states {
		if state.Retries > 0 || state.Finished() {
			copied := state.Record
			records[id] = &copied
		}
	}
	return records
}

// Restore puts records in the place of those that the storage holds. They are still to be stored. What
// another operator has stored meanwhile stands: an end, or at least as many attempts.
func (p *Progress) Restore(records map[string]*storage.Record) {
	for id, record := range records {
		state := p.Load(id)
		if theirs := state.stored; theirs != nil && theirs.Purpose == record.Purpose && (theirs.Finished() || theirs.Retries >= record.Retries) {
			continue
		}
		state.Record = *record
		state.dirty = true
	}
}

// Stored returns the record of this cycle that the storage holds, or nil if it holds none.
func (s *State) Stored() *storage.Record {
	if s.stale {
		return nil
	}
	return s.stored
}

// Found returns the record that the storage holds, even that of an earlier cycle.
func (s *State) Found() *storage.Record { return s.stored }

// isStored reports whether the storage holds a record of this cycle.
func (s *State) isStored() bool { return s.Stored() != nil }

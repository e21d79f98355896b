package execution

import (
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Stored are the records that the storage holds, without what has happened since they were
// read.
type Stored struct{ progress *Progress }

// IDs returns the sorted ids of the handlers that have a record.
func (s Stored) IDs() []string {
	return s.progress.idsWhere(func(state *State) bool { return state.stored != nil })
}

// Superseded returns the purposes of stored records that were made for another
// purpose than this one, each with its number of handlers.
func (s Stored) Superseded(purpose cause.Reason) map[cause.Reason]int {
	others := map[cause.Reason]int{}
	for _, state := range s.progress.states {
		if state.stored != nil && state.stored.Purpose != "" && state.stored.Purpose != purpose {
			others[state.stored.Purpose]++
		}
	}
	return others
}

// HasOpen reports whether the storage holds a record of the purpose, that is, an
// earlier pass left the cycle unfinished.
func (s Stored) HasOpen(purpose cause.Reason) bool {
	return s.has(func(r *storage.Record) bool { return r.Purpose == purpose })
}

// HasStartedBy reports whether the storage holds a record that was started at the
// given time or before.
func (s Stored) HasStartedBy(then time.Time) bool {
	return s.has(func(r *storage.Record) bool { return !r.Started.After(then) })
}

// HasToken reports whether the storage holds a record of a handler that has ended in the
// cycle with this token, or that this cycle carries over.
func (s Stored) HasToken(token string) bool {
	return s.has(func(r *storage.Record) bool { return r.Cycle == token })
}

// HasLeftovers reports whether the storage holds a record that belongs to no change
// anymore. Records of resuming handlers do not count: their owner, such as another
// operator that has just started, is about to finish them.
func (s Stored) HasLeftovers() bool {
	return s.has(func(r *storage.Record) bool { return r.Purpose != cause.Resume })
}

// has reports whether a stored record passes the test.
func (s Stored) has(test func(*storage.Record) bool) bool {
	for _, state := range s.progress.states {
		if state.stored != nil && test(state.stored) {
			return true
		}
	}
	return false
}

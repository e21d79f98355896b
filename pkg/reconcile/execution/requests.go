package execution

import (
	"slices"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/storage"
)

// HasEnded reports whether the handler has ended in a cycle with the purpose.
func (s *State) HasEnded(purpose cause.Reason) bool {
	return s.Finished() && (s.Purpose == purpose || s.Purpose == "")
}

// Retry makes a waiting handler due, with its waiting sub-handlers and the handlers that it is
// a sub-handler of.
func Retry(p *Progress, id string) {
	ids := append([]string{id}, p.Load(id).Subrefs...)
	for above, state := range p.states {
		if slices.Contains(state.Subrefs, id) {
			ids = append(ids, above)
		}
	}
	for _, each := range ids {
		if state := p.Load(each); !state.Finished() {
			state.Delayed = time.Time{}
		}
	}
}

// Rerun lets a handler start from scratch, with its sub-handlers.
func Rerun(p *Progress, id string, purpose cause.Reason) {
	state := p.Load(id)
	for _, child := range state.Subrefs {
		Rerun(p, child, purpose)
	}
	state.Record = storage.Record{Started: now(), Purpose: purpose, Subrefs: state.Subrefs}
	state.dirty = true
}

// Skip ends a handler as if it had succeeded.
func Skip(p *Progress, id string, purpose cause.Reason) {
	state := p.Include(id, purpose, false)
	state.finish(true, "skipped by a request")
	p.abandon(state.Subrefs)
}

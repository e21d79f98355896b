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
func (p *Progress) Retry(id string) {
	for _, each := range append([]string{id}, p.Load(id).Subrefs...) {
		p.Load(each).wake()
	}
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

// wake makes a waiting handler due. That is stored, because another pass may call it: if handlers
// are called one by one, for example.
func (s *State) wake() {
	if !s.Finished() && !s.Delayed.IsZero() {
		s.Delayed = time.Time{}
		s.dirty = true
		s.active = true
	}
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

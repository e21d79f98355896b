package execution

import (
	"slices"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// Gate lets a Runner call handlers, and takes back from the pass what it must not hold
// meanwhile.
type Gate interface {
	// CanCall reports whether the handler can be called now. Otherwise it is not due; the
	// gate requests another pass when it is.
	CanCall(d *handler.Declaration) bool
	// Begin begins a call. It reports false if the handler must wait after all.
	Begin(d *handler.Declaration) (end func(), ok bool)
	// Waits reports whether the handler with the id waits for the gate, and CanGo whether
	// it waited and can be called now.
	Waits(id string) bool
	CanGo(id string) bool
	// Leave is called before the code of a handler runs, and Enter after it.
	Leave()
	Enter()
}

// openGate lets everything pass.
type openGate struct{}

func (openGate) CanCall(*handler.Declaration) bool         { return true }
func (openGate) Begin(*handler.Declaration) (func(), bool) { return func() {}, true }
func (openGate) Waits(string) bool                         { return false }
func (openGate) CanGo(string) bool                         { return false }
func (openGate) Leave()                                    {}
func (openGate) Enter()                                    {}

func (r *Runner) gate() Gate {
	if r.Gate == nil {
		return openGate{}
	}
	return r.Gate
}

// isDue reports whether a handler can be called now. A handler that waits only for the slots
// of its sub-handlers is called when one of them has got one.
func (r *Runner) isDue(d *handler.Declaration) bool {
	state := r.Progress.Load(d.ID)
	blocked := false
	switch {
	case state.Finished() || state.aside != nil:
		return false
	case r.canSubhandlerGo(state):
	case state.RemainingDelay(now()) > 0:
		return false
	default:
		blocked = r.isBlocked(state)
	}
	if blocked || !r.gate().CanCall(d) {
		r.postpone(state)
		return false
	}
	state.waiting = false
	return true
}

// canSubhandlerGo reports whether one of the sub-handlers has waited for its slot and can be
// called now.
func (r *Runner) canSubhandlerGo(parent *State) bool {
	for _, id := range parent.Subrefs {
		if r.gate().CanGo(id) {
			return true
		}
	}
	return false
}

// isBlocked reports whether a sub-handler waits for its slot, and no other is due.
func (r *Runner) isBlocked(parent *State) (blocked bool) {
	for _, id := range parent.Subrefs {
		switch state := r.Progress.Load(id); {
		case state.Finished() || state.RemainingDelay(now()) > 0:
		case r.gate().Waits(id):
			blocked = true
		default:
			return false
		}
	}
	return blocked
}

// postpone leaves a handler to another pass, which the gate requests. A handler that was
// not called yet has no record, so its time does not run.
func (r *Runner) postpone(state *State) {
	state.waiting = true
	if state.unstarted {
		state.dirty = false
	}
}

// start begins the record of a handler with its first call. It reports whether it is the
// first one.
func (s *State) start() (isFirst bool) {
	isFirst = s.unstarted
	if isFirst {
		s.Started = now()
		s.dirty = true
		s.unstarted = false
	}
	return isFirst
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

// hasWaiting reports whether one of the sub-handlers waits for a slot.
func (s *subhandlers) hasWaiting(ids []string) bool {
	return slices.ContainsFunc(ids, func(id string) bool { return s.runner.Progress.Load(id).waiting })
}

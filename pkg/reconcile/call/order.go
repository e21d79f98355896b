package call

import (
	"strings"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
)

// Handlers can declare an order: kopf.After waits until others have succeeded in the cycle, and
// kopf.AfterFailure until one of them has failed for good. A handler whose turn can never come is skipped: its
// record is that of a success with a message, so that Kopf does not call it, either. A handler that a person
// skips counts as one that has succeeded. The end of a handler is stored before the next one in the order is
// called.
//
// Others that do not take part in the cycle are not waited for: they have neither succeeded nor failed.

// neverTurn begins the message of a handler that was skipped because of the order.
const neverTurn = "its turn never comes: "

// isOutOfOrder reports whether the handler was skipped because its turn never came.
func (s *State) isOutOfOrder() bool { return s.Success && strings.HasPrefix(s.Message, neverTurn) }

// Turn says whether the order lets a handler be called.
type Turn struct {
	// Waits contains the ids of the handlers that it waits for.
	Waits []string
	// Failures contains why handlers of AfterFailure have failed, by their ids as declared there.
	Failures map[string]string
	// Never is why it will not be called in this cycle, as its record says; empty if it can be.
	Never string
}

// TurnOf returns whether the order lets a handler be called. The others are the handlers that take part in the cycle.
func (p *Progress) TurnOf(d *handler.Declaration, others registry.Handlers) (t Turn) {
	named := func(id string) registry.Handlers {
		return others.Where(func(other *handler.Declaration) bool { return other.IsCalled(id) })
	}
	for _, id := range d.After {
		for _, other := range named(id) {
			state := p.Load(other.ID)
			switch {
			case state.Failure:
				return Turn{Never: neverTurn + other.ID + " has failed"}
			case state.isOutOfOrder():
				return Turn{Never: neverTurn + other.ID + " was skipped"}
			case !state.Success:
				t.Waits = append(t.Waits, other.ID)
			}
		}
	}
	if len(d.AfterFailure) == 0 {
		return t
	}
	var open []string
	for _, id := range d.AfterFailure {
		for _, other := range named(id) {
			state := p.Load(other.ID)
			switch {
			case state.Failure:
				if t.Failures == nil {
					t.Failures = map[string]string{}
				}
				t.Failures[id] = state.Message
			case !state.Success:
				open = append(open, other.ID)
			}
		}
	}
	switch {
	case t.Failures != nil:
	case len(open) == 0:
		return Turn{Never: neverTurn + notFailed(d.AfterFailure)}
	default:
		t.Waits = append(t.Waits, open...)
	}
	return t
}

// notFailed says that none of some handlers has failed.
func notFailed(ids []string) string {
	if len(ids) == 1 {
		return ids[0] + " has not failed"
	}
	return "none of these has failed: " + strings.Join(ids, ", ")
}

// Order lets the handlers wait for others, or skips them, as their order says. A handler that was called goes on.
func (r *Runner) Order(handlers registry.Handlers) {
	for isSettled := false; !isSettled; { // to skip a handler can be the turn of others, or their end
		isSettled = true
		for _, d := range handlers {
			state := r.Progress.Load(d.ID)
			if len(d.After)+len(d.AfterFailure) == 0 || state.Finished() || state.misfit != nil {
				continue
			}
			turn := r.Progress.TurnOf(d, handlers)
			state.follows = turn.Failures
			if state.Retries > 0 {
				continue
			}
			state.outOfTurn = len(turn.Waits) > 0
			switch {
			case turn.Never != "":
				state.finish(true, turn.Never)
				r.Progress.abandon(state.Subrefs)
				r.OutOfOrder(d, turn.Never)
				isSettled = false
			case state.outOfTurn && state.unstarted:
				state.dirty = false // without a record, its time does not run
			}
		}
	}
}

package plan

import (
	"maps"
	"slices"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
)

// selectHandlers selects the handlers for what has happened. The ids are those of handlers that are called again
// on request, or because of their revisions.
func (p *Plan) selectHandlers(f Facts, reruns []string) {
	if !p.Reason.Handled() {
		p.Requests.Apply(p.Cycle.Progress, requests.Handlers{Declared: f.Handlers.Declared}, p.Reason)
		return
	}
	selected := p.Selected(f)
	if p.Reason != cause.Delete {
		for _, id := range reruns {
			again := p.rerunnable(f, id)
			if again != nil && !slices.ContainsFunc(selected, func(d *handler.Declaration) bool { return d.ID == id }) {
				selected = append(slices.Clip(selected), again)
			}
		}
	}
	p.Requests.Apply(p.Cycle.Progress, requests.Handlers{Selected: selected, Declared: f.Handlers.Declared}, p.Reason)
	p.Cycle.Skipped = p.Requests.HasSkipped()
	p.Handlers = p.collectMisfits(selected)
	p.InScope = p.InScope || len(p.Handlers) > 0 // a change that is taken back may leave the scope
	changing := f.Handlers.Changing              // not the facts, whose essences must not stay in memory while handlers run
	p.Cycle.IsDue = func(id string, before, after object.Essence) bool {
		return IsSelected(changing, p.CallContext, id, before, after)
	}
	p.Cycle.HoldOnFailure = IDsOf(p.Handlers.Where(func(d *handler.Declaration) bool { return d.Hold }))
}

// Selected returns the handlers for this change: those for the difference between the base and the current state, and
// those that take part in the cycle since an earlier state.
func (p *Plan) Selected(f Facts) registry.Handlers {
	candidates := f.Handlers.Changing
	if p.Reason == cause.Update && len(p.Diff) == 0 {
		candidates = candidates.OfKind(handler.OnResume)
	}
	selected := candidates.Selected(&p.Cause)
	if hasResumed := f.Memory.HasResumed; hasResumed != nil {
		// Those of the open cycle have a record, and take part in it until it ends.
		selected = selected.Where(func(d *handler.Declaration) bool {
			return d.Kind != handler.OnResume || !hasResumed(d.ID) || p.Cycle.Progress.HasRecord(d.ID)
		})
	}
	return p.Cycle.Progress.WithEarlier(selected, f.Handlers.Changing, &p.Cause)
}

// rerunnable returns the declaration for calling a handler again, or nil if there is none, or
// if it does not match the object.
func (p *Plan) rerunnable(f Facts, id string) *handler.Declaration {
	i := slices.IndexFunc(f.Handlers.Changing, func(d *handler.Declaration) bool {
		return d.ID == id && d.Kind != handler.OnDelete && d.InScope(&p.Cause)
	})
	if i < 0 {
		return nil
	}
	return f.Handlers.Changing[i]
}

// IsSelected reports whether a handler is for the change between two states of the object of the arguments.
func IsSelected(changing registry.Handlers, arguments handler.CallContext, id string, before, after object.Essence) bool {
	change := diff.Compute(before, after, diff.Full)
	if len(change) == 0 {
		return false
	}
	arguments.Body = bodyAt(arguments.Body, after)
	between := handler.Cause{CallContext: arguments, Reason: cause.Update, Old: before, New: after, Diff: change}
	if before == nil {
		between.Reason = cause.Create
	}
	return slices.ContainsFunc(changing, func(d *handler.Declaration) bool { return d.ID == id && d.Selects(&between) })
}

// bodyAt returns the object with the fields of a former state, for filters of values. Filters of
// labels and annotations apply to the current ones.
func bodyAt(current *object.Body, state object.Essence) *object.Body {
	raw := maps.Clone(current.Raw())
	maps.DeleteFunc(raw, func(key string, _ any) bool { return !slices.Contains(notInEssence, key) })
	for key, value := range state {
		if key != "metadata" {
			raw[key] = value
		}
	}
	return object.NewBody(raw)
}

// notInEssence contains the fields of objects that an essence does not have entirely.
var notInEssence = []string{"apiVersion", "kind", "metadata", "status"}

// IsOpen reports whether a handler takes part in the cycle and has not finished.
func (p *Plan) IsOpen(id string) bool { return !p.NothingToDo() && p.Cycle.Progress.IsOpen(id) }

// HasFinished reports whether a handler has finished in this cycle.
func (p *Plan) HasFinished(d *handler.Declaration) bool {
	state := p.Cycle.Progress.Load(d.ID)
	return state.HasEnded(p.Reason) || state.Finished() && p.KeepsRecord(d)
}

// KeepsRecord reports whether a record with another reason counts for this cycle. It does
// only for resume handlers, which are called together with all others; any other handler has
// not seen this change.
func (p *Plan) KeepsRecord(d *handler.Declaration) bool {
	return d.Kind == handler.OnResume && p.Reason != cause.Delete
}

// WillSkip reports whether a request that is not honored yet has ended the handler.
func (p *Plan) WillSkip(id string) bool {
	state := p.Cycle.Progress.Load(id)
	stored := state.Stored()
	return state.HasEnded(p.Reason) && state.Success && (stored == nil || !stored.Success || stored.Purpose != p.Reason)
}

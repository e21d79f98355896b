package plan

import (
	"slices"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
)

// Misfit is a handler that cannot be called, because the object does not fit its Go type.
type Misfit struct {
	Handler *handler.Declaration
	Err     *handler.MisfitError
	// Waits is set if the handler waits until the object fits. Otherwise, it is skipped.
	Waits bool
}

// collectMisfits adds the selected handlers whose Go type the object does not fit to the misfits: they
// would be called, but cannot. It returns the handlers of the cycle, with those that wait
// and without those that are skipped. It asks only about handlers that are about to be called.
func (p *Plan) collectMisfits(selected registry.Handlers) registry.Handlers {
	return selected.Where(func(d *handler.Declaration) bool {
		if p.HasFinished(d) {
			return true
		}
		err := d.Misfit(&p.Cause)
		if err == nil || d.OnMisfit == handler.CallUntyped {
			return true
		}
		// An object that no handler has worked on has nothing to clean up before its deletion.
		waits := p.Reason != cause.Delete || d.HoldsDeletion() && d.OnMisfit == handler.Hold && p.wasHandled()
		p.Misfits = append(p.Misfits, Misfit{d, err, waits})
		if waits {
			p.Cycle.Progress.SetMisfit(d.ID, err)
		}
		return waits
	})
}

// wasHandled reports whether a handler may have worked on the object before its deletion.
func (p *Plan) wasHandled() bool {
	progress := p.Cycle.Progress
	return p.Cycle.Base != nil || slices.ContainsFunc(progress.Stored().IDs(), func(id string) bool {
		stored := progress.Load(id).Stored()
		return stored.Purpose != cause.Delete && (stored.Retries > 0 || stored.Finished())
	})
}

// canHoldDeletion reports whether the deletion would wait for a handler, so that the object
// needs the finalizer. A handler that does not fit is waited for if other handlers have worked
// on the object, or are about to. It asks only about objects that do not have the finalizer.
func (p *Plan) canHoldDeletion(changing registry.Handlers) bool {
	// If no handler of the cycle can be called, the cycle stays open, and nothing is stored. There are no
	// misfits of background handlers yet.
	onlyMisfits := len(p.Misfits) > 0 && len(p.Misfits) == len(p.Handlers)
	return p.HasFinalizer || slices.ContainsFunc(changing, func(d *handler.Declaration) bool {
		return d.HoldsDeletion() && d.InScope(&p.Cause) && (d.OnMisfit == handler.CallUntyped ||
			d.Misfit(&p.Cause) == nil || d.OnMisfit == handler.Hold && (p.wasHandled() || !onlyMisfits))
	})
}

// WithoutMisfits returns the handlers that can be called, and adds the others to the Misfits. They are no change
// handlers.
func (p *Plan) WithoutMisfits(selected registry.Handlers) registry.Handlers {
	return selected.Where(func(d *handler.Declaration) bool {
		err := d.Misfit(&p.Cause)
		if err != nil {
			p.Misfits = append(p.Misfits, Misfit{d, err, true})
		}
		return err == nil
	})
}

// AllMisfits returns the handlers that could not be called, including those that have found out when they
// were called: their former state does not fit, or a handler of drift. The calls are those that belong to no
// cycle; nil if there are none.
func (p *Plan) AllMisfits(calls *record.Calls) []Misfit {
	all := p.Misfits
	add := func(handlers registry.Handlers, progress *call.Progress) {
		for _, d := range handlers {
			err := handler.AsMisfit(progress.Misfit(d.ID))
			if err != nil && !slices.ContainsFunc(all, func(m Misfit) bool { return m.Handler.ID == d.ID }) {
				all = append(slices.Clip(all), Misfit{Handler: d, Err: err, Waits: true})
			}
		}
	}
	if len(p.Handlers) > 0 {
		add(p.Handlers, p.Cycle.Progress)
	}
	if calls != nil {
		add(calls.Handlers, calls.Progress)
	}
	return all
}

package plan

import (
	"slices"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
)

// Plan says what to do for one version of an object.
type Plan struct {
	// Cause describes what has happened to the object.
	handler.Cause
	// Cycle is the handling of that, as it is stored on the object. It is nil if the resource has no
	// change handlers.
	Cycle *record.Cycle
	// Handlers are called for what has happened, in this order, unless their records say that they have
	// ended or wait.
	Handlers registry.Handlers
	// Background are the daemons and timers that the object should have now.
	Background registry.Handlers
	// Misfits are the handlers that cannot be called.
	Misfits []Misfit
	// Requests are those of people, in annotations. Nil if there are none.
	Requests *requests.Requests

	// InScope is set if some change handler applies to the object, now or later.
	InScope bool
	// NeedsFinalizer is set if the deletion of the object must wait for this operator.
	NeedsFinalizer bool
	HasFinalizer   bool
	Deleting       bool
	// Unserved is set if a deletion handler of another version matches, which is not called.
	Unserved bool
}

// Make makes the plan. It consumes the Progress of the facts, which becomes that of the plan.
func Make(f Facts) *Plan {
	p := &Plan{Deleting: f.Arguments.Body.Deleting(), HasFinalizer: f.HasFinalizer}
	p.CallContext = f.Arguments
	if len(f.Handlers.Changing) > 0 {
		p.planChange(f)
	}
	p.selectBackground(f)
	return p
}

// planChange determines what has happened to the object, and which handlers are called for it.
func (p *Plan) planChange(f Facts) {
	stored := f.Stored
	p.Cycle = &record.Cycle{Declared: f.Handlers.IDs, Sequences: f.Handlers.Sequences, Base: stored.Base, Old: stored.Old, New: stored.New, Progress: stored.Progress, Version: stored.Version}
	p.Old, p.New, p.Diff = p.Cycle.Difference()
	if len(p.Diff) == 0 {
		p.Old = p.New // one value, so that comparing it again costs nothing
		p.Cycle.Old = p.New
	}
	// An open cycle counts as a change although it was taken back: the handlers that have seen it must also
	// see its reversal.
	change := cause.Same
	switch {
	case p.Old == nil:
		change = cause.Never
	case len(p.Diff) > 0 || p.Cycle.Progress.Stored().HasOpen(cause.Update):
		change = cause.Changed
	}
	p.Reason, p.Initial = cause.Detect(cause.Observation{
		Deleting: p.Deleting, Held: p.HasFinalizer, Change: change, Initial: f.Memory.Initial,
	})
	p.Cycle.Reason = p.Reason
	p.Cycle.Reopen(stored)
	p.InScope = f.Handlers.Changing.InScope(&p.Cause)

	// People can request to call handlers again. An object to which nothing has happened is resumed for them,
	// with old and new values that are equal.
	var reruns []string
	if p.InScope && p.Reason != cause.Free {
		p.Requests = f.Requests.Read(p.CallContext.Body)
		reruns = p.Requests.Reruns(p.Cycle.Progress)
		if p.Reason == cause.NoOp && slices.ContainsFunc(reruns, func(id string) bool { return p.rerunnable(f, id) != nil }) {
			p.Reason = cause.Resume
			p.Cycle.Reason = cause.Resume
		}
	}
	// Revisions have the same effect, but the object is updated for them.
	if f.Revisions != nil {
		outdated := f.Revisions.Outdated(f.Handlers.Revised, p.Subject(f.Key))
		if len(outdated) > 0 {
			p.Reason = cause.Update
			p.Cycle.Reason = cause.Update
		}
		reruns = append(reruns, outdated...)
	}

	p.selectHandlers(f, reruns)
	p.Unserved = f.Handlers.Unserved.HoldDeletion(&p.Cause)
	p.NeedsFinalizer = (p.Unserved || f.Handlers.Changing.HoldDeletion(&p.Cause)) && p.canHoldDeletion(f.Handlers.Changing)
}

// Subject returns the object as the revisions of handlers see it.
func (p *Plan) Subject(key object.Key) revision.Subject {
	return revision.Subject{Key: key, Cause: &p.Cause, Progress: p.Cycle.Progress}
}

// NothingToDo reports whether there is nothing to handle: no handler applies to the object,
// or nothing has happened to it.
func (p *Plan) NothingToDo() bool { return !p.InScope || !p.Reason.Handled() }

// MustAddFinalizer reports whether the finalizer must be added, before any handler is called.
func (p *Plan) MustAddFinalizer() bool { return p.NeedsFinalizer && !p.HasFinalizer && !p.Deleting }

// selectBackground selects the daemons and timers that the object must have. It also
// determines whether they need the finalizer, because the object must wait for a daemon.
func (p *Plan) selectBackground(f Facts) {
	if len(f.Handlers.Background) == 0 {
		return
	}
	current := f.Handlers.Background
	if p.Deleting {
		current = current.Where(func(d *handler.Declaration) bool { return d.Deleted })
	}
	if len(current) > 0 { // the body need not be decoded otherwise
		scope := &handler.Cause{CallContext: p.CallContext, New: p.CallContext.Body.Raw()}
		p.Background = p.WithoutMisfits(current.Where(func(d *handler.Declaration) bool { return d.InScope(scope) }))
	}
	needsFinalizer := f.Memory.NeedsFinalizer
	if needsFinalizer == nil {
		needsFinalizer = func(d *handler.Declaration) bool { return d.Kind == handler.OnDaemon && !d.Deleted }
	}
	p.NeedsFinalizer = p.NeedsFinalizer || f.Memory.DaemonsRunning || slices.ContainsFunc(p.Background, needsFinalizer)
}

// AppliesToCreation reports whether a handler is called if the object is created as it is.
func (p *Plan) AppliesToCreation(h *Handlers) bool {
	creation := &handler.Cause{CallContext: p.CallContext, Reason: cause.Create, New: p.New, Diff: diff.Compute(nil, p.New, diff.Full)}
	return len(h.Changing.Selected(creation)) > 0
}

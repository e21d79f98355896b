package plan

import (
	"maps"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
)

// Decision says what a write does to an object, in addition to the edits and the records of its handlers. It
// is made for one version of the object, and again for each other version that the write is bound to.
type Decision struct {
	// AddFinalizer is set if handlers need the finalizer before anything else happens.
	AddFinalizer bool
	// RemoveFinalizer is set if no handler needs the finalizer after the cycle.
	RemoveFinalizer bool
	// DaemonsRunning keeps the cycle of a deletion open until its daemons have ended.
	DaemonsRunning bool
	// Annotations are set by the same write.
	Annotations map[string]string
	// StaleRecords are records that belong to no open cycle and must be removed.
	StaleRecords *record.Cycle
	// Marks are set by the write that ends the cycle. Nil: there are none.
	Marks *Marks
	// Conditions decides what the status says about the outcome of the handlers. Nil: it says nothing.
	Conditions *Conditions
}

// Circumstances contains what a decision depends on, in addition to plans.
type Circumstances struct {
	Key      object.Key
	Handlers *Handlers
	// Calls are those that belong to no cycle. Nil means that there are none.
	Calls *record.Calls
	// Children are those that the object waits for.
	Children Children
	// DaemonsRunning is set if daemons must end before the object can be deleted.
	DaemonsRunning bool
	Revisions      *revision.Reviser
	Now            time.Time
}

// DecideEnd decides about the write after the calls of a cycle, based on the plan for the version that is
// written to. A deletion removes the finalizer when all current handlers have finished; other cycles remove
// it when no handler needs it.
func (p *Plan) DecideEnd(now *Plan, c Circumstances) Decision {
	d := Decision{
		DaemonsRunning: now.Deleting && c.DaemonsRunning, Annotations: p.honored(), Conditions: p.conditions(c),
	}
	if len(c.Handlers.Revised) > 0 && p.Reason != cause.Delete {
		d.Marks = &Marks{subject: p.Subject(c.Key), handlers: c.Handlers, revisions: c.Revisions}
		version := p.Cause
		version.CallContext.Body = now.CallContext.Body
		d.Marks.subject.Cause = &version
	}
	switch {
	case !now.HasFinalizer:
		d.AddFinalizer = now.MustAddFinalizer()
	case p.Reason == cause.Delete:
		d.RemoveFinalizer = (p == now || p.hasHandled(now)) && !now.Unserved
	default:
		d.RemoveFinalizer = !now.NeedsFinalizer
	}
	return d
}

// hasHandled reports whether the handlers of another plan have finished in this cycle.
func (p *Plan) hasHandled(now *Plan) bool {
	for _, d := range now.Handlers {
		if !p.Cycle.Progress.Has(d.ID) || !p.Cycle.Progress.Load(d.ID).Finished() {
			return false
		}
	}
	return true
}

// DecideAtRest decides about the write to an object that has nothing to do. It removes an unneeded
// finalizer, and the records of a cycle that no longer exists.
func (p *Plan) DecideAtRest(c Circumstances) Decision {
	d := Decision{
		AddFinalizer: p.MustAddFinalizer(), RemoveFinalizer: p.HasFinalizer && !p.NeedsFinalizer,
		Annotations: p.honored(), Conditions: p.conditions(c),
	}
	if p.InScope && p.Reason == cause.NoOp && p.Cycle.Progress.Stored().HasStale() {
		d.StaleRecords = p.Cycle
	}
	if p.InScope {
		// Handlers with a baseline adopt the object as it is.
		d.Annotations = joined(c.Revisions.Adopted(c.Handlers.Revised, p.Subject(c.Key)), d.Annotations)
	}
	return d
}

// honored returns the annotation that records the new requests, if any.
func (p *Plan) honored() map[string]string {
	key, value := p.Requests.Record()
	if key == "" {
		return nil
	}
	return map[string]string{key: value}
}

// AnnotationsOf returns the annotations that a write sets.
func (d *Decision) AnnotationsOf(endsCycle bool) map[string]string {
	if !endsCycle || d.Marks == nil {
		return d.Annotations
	}
	// They depend on the outcome of the handlers at each attempt to write, because a rejected edit fails its
	// handler. Nil: the annotation with the marks stays as it is.
	marks := d.Marks.revisions.Ended(d.Marks.handlers.Revised, d.Marks.subject, d.Marks.handlers.IDs)
	return joined(marks, d.Annotations)
}

// joined returns some annotations with others, which may be nil.
func joined(some, others map[string]string) map[string]string {
	if some == nil {
		return others
	}
	maps.Copy(some, others)
	return some
}

// Marks are the revisions under which the handlers of a cycle have ended.
type Marks struct {
	subject   revision.Subject
	handlers  *Handlers
	revisions *revision.Reviser
}

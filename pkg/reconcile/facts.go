package reconcile

import (
	"context"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
)

// cycle is a plan that a pass carries out.
type cycle struct {
	*plan.Plan

	runner *call.Runner   // calls the handlers; nil if there is nothing to do
	calls  triggeredCalls // that do not belong to this change
	packed *record.Packed // the essences, while the code of many handlers runs
}

// isOpen reports whether a handler will be called, now or later.
func (c *cycle) isOpen(id string) bool { return c.IsOpen(id) || c.calls.isOpen(id) }

// include adds the selected handlers to the cycle, except those that cannot be called.
func (c *cycle) include() {
	for _, d := range c.Handlers {
		if c.Cycle.Progress.Misfit(d.ID) == nil {
			c.Cycle.Progress.Include(d.ID, c.Reason, c.KeepsRecord(d))
		}
	}
}

// plan decides what to do for a version of the object.
func (t *target) plan(ctx context.Context, body *object.Body) (*cycle, error) {
	facts, err := t.facts(ctx, body)
	if err != nil {
		return nil, err
	}
	return &cycle{Plan: plan.Make(facts)}, nil
}

// facts reads what a plan for a version of the object depends on.
func (t *target) facts(ctx context.Context, body *object.Body) (plan.Facts, error) {
	f := plan.Facts{
		Key: t.key, Arguments: t.callArguments(body), Handlers: t.resource.Handlers,
		HasFinalizer: slices.Contains(body.Finalizers(), t.engine.Settings.Persistence.Finalizer),
		Requests:     t.engine.requests, Revisions: t.engine.revisions,
	}
	if len(f.Handlers.Changing) > 0 {
		var err error
		f.Stored, err = t.engine.records.Read(ctx, body, f.Handlers.IDs, f.Handlers.Fields, t.report)
		if err != nil {
			return plan.Facts{}, err
		}
		if body.Deleting() {
			f.Stored.Progress.Restore(t.object.writes.Unstored())
		}
		t.lookFirst(body, f.Stored)
	}
	f.Memory = t.memory(body)
	return f, nil
}

// memory returns what the process knows about the object.
func (t *target) memory(body *object.Body) plan.Memory {
	s := t.object
	m := plan.Memory{Initial: s.initial.Load() && !s.handled}
	if len(s.reported) > 0 {
		m.HasResumed = s.wasFinished
	}
	if b := t.backgroundOf(body, false); b != nil {
		m.DaemonsRunning = b.areDaemonsRunning()
		m.NeedsFinalizer = b.group.NeedsFinalizer
	}
	return m
}

// lookFirst remembers what only the first look at the object by this process shows.
func (t *target) lookFirst(body *object.Body, stored record.Stored) {
	s := t.object
	if s.seen {
		return
	}
	initial := s.initial.Load() && !s.handled
	hasRecords := len(stored.Progress.Stored().IDs()) > 0
	s.seen = true
	s.startedByPredecessor = initial && hasRecords
	s.copied = !initial && (stored.Base != nil || hasRecords)
	t.countUndeclared(body, stored)
}

// countUndeclared counts what handlers that are not declared have left on the object.
func (t *target) countUndeclared(body *object.Body, stored record.Stored) {
	known := slices.Concat(stored.Progress.IDs(), plan.IDsOf(t.resource.Triggered), plan.RunsOf(t.resource.Background))
	t.engine.undeclared.Add(t.resource.Name, t.engine.records.Unknown(body, known), t.resource.IDs)
	if !t.resource.ensures() && len(convergence.ReadPlaces(body)) > 0 {
		t.engine.undeclared.AddChild(t.resource.Name, "")
	}
}

// backgroundOf returns the background of the object. It creates it on first use: for handlers
// that match, or that are still stopping because the object seemed to be gone.
func (t *target) backgroundOf(body *object.Body, needed bool) *background {
	s := t.object
	if s.background != nil || len(t.resource.Background) == 0 {
		return s.background
	}
	b := &background{engine: t.engine, resource: t.resource, key: t.key, uid: body.UID(), object: s}
	if !needed && !t.engine.supervisor.IsStopping(b.Identity()) {
		return nil
	}
	b.seen = body.Snapshot().Packed()
	b.group = t.engine.supervisor.NewGroup(b)
	s.background = b
	return b
}

package reconcile

import (
	"context"
	"slices"

	"github.com/kopf-go/kopf/internal/handler"
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
func (c *cycle) isOpen(id string) bool {
	return c.IsOpen(id) || c.calls.Calls != nil && c.calls.Progress.IsOpen(id)
}

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

// facts reads what a plan for a version of the object depends on. The first look at the object by this process
// also remembers what only that shows.
func (t *target) facts(ctx context.Context, body *object.Body) (plan.Facts, error) {
	s := t.object
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
			f.Stored.Progress.Restore(s.writes.Unstored())
		}
		if !s.seen {
			hasRecords := len(f.Stored.Progress.Stored().IDs()) > 0
			wasHandled := f.Stored.Base != nil || hasRecords
			if wasHandled && !t.resource.Selection.IsEmpty() {
				// It was handled before it has matched the selectors of the watch again. What this process knew of it is
				// forgotten, as after a start.
				s.initial.Store(true)
			}
			isInitial := s.initial.Load()
			s.startedByPredecessor = hasRecords && isInitial
			s.copied = wasHandled && !isInitial
			t.countUndeclared(ctx, body, f.Stored)
		}
	}
	s.seen = true

	f.Memory.Initial = s.initial.Load() && !s.handled
	if len(s.reported) > 0 {
		f.Memory.HasResumed = s.wasFinished
	}
	if b := t.backgroundOf(body, false); b != nil {
		f.Memory.DaemonsRunning = b.areDaemonsRunning()
		f.Memory.NeedsFinalizer = b.group.NeedsFinalizer
	}
	return f, nil
}

// countUndeclared counts what handlers that are not declared have left on the object.
func (t *target) countUndeclared(ctx context.Context, body *object.Body, stored record.Stored) {
	known := slices.Concat(stored.Progress.IDs(), plan.IDsOf(t.resource.Triggered), plan.RunsOf(t.resource.Background))
	unknown, err := t.engine.records.Unknown(ctx, body, known)
	if err != nil {
		t.report.Log.Error(err, "The storage does not say whether it has progress of handlers that are not declared; this is ignored.")
	}
	t.engine.undeclared.Add(t.resource.Name, unknown, t.resource.IDs)
	ensures := slices.ContainsFunc(t.resource.Declared, func(d *handler.Declaration) bool { return d.Ensures != nil })
	if !ensures && len(convergence.ReadPlaces(body)) > 0 {
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
	b := &background{engine: t.engine, resource: t.resource, key: t.key, uid: body.UID(), object: s, seesWrites: t.resource.isAttended}
	if !needed && !t.engine.supervisor.IsStopping(b.Identity()) {
		return nil
	}
	b.seen = body.Snapshot()
	b.group = t.engine.supervisor.NewGroup(b)
	s.background = b
	return b
}

package record

import (
	"context"
	"errors"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Keeper reads and writes the records of objects. It has no state.
type Keeper struct{ Storages settings.Persistence }

// Essence returns the part of the object that change detection compares. The extra
// fields belong to it because handlers watch them.
func (k Keeper) Essence(body *object.Body, extra []object.Path) object.Essence {
	return k.clear(k.Storages.DiffBase.Build(body, extra))
}

// clear removes the operator's own records.
func (k Keeper) clear(essence object.Essence) object.Essence {
	if essence == nil {
		return nil
	}
	return k.Storages.Progress.Clear(essence)
}

// Stored contains what is stored on an object, and the essence that is compared with it.
type Stored struct {
	// Base is the essence that was last handled; Old is the same without the operator's own records.
	// Nil means that the object was never handled.
	Base, Old object.Essence
	// New is the present essence.
	New object.Essence
	// Progress has the records of the handlers of changes.
	Progress *call.Progress
	// Version is the resourceVersion of the object on which all this is stored.
	Version string
	// Open is the open cycle of a creation or an update; nil if there is none.
	Open *storage.Cycle
}

// Read reads what is stored about the handlers of changes with the ids. The extra fields belong to the essence.
func (k Keeper) Read(ctx context.Context, body *object.Body, ids []string, extra []object.Path, r report.Reporter) (s Stored, err error) {
	s.Base, s.Old, err = k.Base(ctx, body, r)
	if err != nil {
		return Stored{}, err
	}
	s.Progress, err = k.Progress(ctx, body, ids, r)
	if err != nil {
		return Stored{}, err
	}
	s.New = k.Essence(body, extra)
	s.Version = body.ResourceVersion()
	records := s.Progress.Stored()
	if records.HasOpen(cause.Create) || records.HasOpen(cause.Update) {
		s.Open, err = k.kept(ctx, body, r, func() (*call.Progress, error) { return s.Progress, nil })
	}
	return s, err
}

// Base returns the stored essence that was last handled, as it is and without the operator's
// own records. It returns nil if the object was never handled.
func (k Keeper) Base(ctx context.Context, body *object.Body, r report.Reporter) (base, old object.Essence, err error) {
	base, err = k.fetchBase(ctx, body)
	if err := ignoreUnreadable(body, err, r); err != nil {
		return nil, nil, err
	}
	return base, k.clear(base), nil
}

// Record returns the record of a handler, or nil if there is none.
func (k Keeper) Record(ctx context.Context, body *object.Body, id string, r report.Reporter) (*storage.Record, error) {
	record, err := k.fetchRecord(ctx, body, id)
	if err := ignoreUnreadable(body, err, r); err != nil {
		return nil, err
	}
	return record, nil
}

// LastRun returns the last run that has ended of a timer with a schedule. Without one, it has started when the object
// was created.
func (k Keeper) LastRun(ctx context.Context, body *object.Body, id string, r report.Reporter) (storage.Record, error) {
	run, err := k.Record(ctx, body, RunOf(id), r)
	if err != nil || run == nil {
		return storage.Record{Started: body.CreationTimestamp()}, err
	}
	return *run, nil
}

// Progress returns the progress of the handlers. It finds the records of sub-handlers through
// those of their parents.
func (k Keeper) Progress(ctx context.Context, body *object.Body, ids []string, r report.Reporter) (*call.Progress, error) {
	var failure error
	progress := call.NewProgress(func(id string) *storage.Record {
		record, err := k.Record(ctx, body, id, r)
		failure = errors.Join(failure, err)
		return record
	})
	for _, id := range ids {
		progress.Load(id)
	}
	if failure != nil {
		return progress, failure
	}
	return progress, k.markStale(ctx, body, progress, r)
}

// kept returns the open cycle as it is stored on the object. It returns nil if none is
// stored, or if it belongs to a cycle that has ended: an operator of Kopf does not know it, and
// leaves it behind.
func (k Keeper) kept(ctx context.Context, body *object.Body, r report.Reporter, progressOf func() (*call.Progress, error)) (*storage.Cycle, error) {
	kept, err := k.fetchCycle(ctx, body)
	if err := ignoreUnreadable(body, err, r); err != nil || kept == nil {
		return nil, err
	}
	progress, err := progressOf()
	if err != nil {
		return nil, err
	}
	isOpen := progress.Stored().HasToken(kept.Token)
	if kept.Token == "" {
		isOpen = progress.Stored().HasStartedBy(kept.Since)
	}
	if !isOpen {
		return nil, nil
	}
	kept.First = k.clear(kept.First)
	for i, state := range kept.States {
		kept.States[i] = k.clear(state)
	}
	return kept, nil
}

// keptOn returns the open cycle on a version that others may have written.
func (k Keeper) keptOn(ctx context.Context, body *object.Body, c *Cycle, r report.Reporter) (*storage.Cycle, error) {
	if !c.Reason.IsChange() {
		return nil, nil
	}
	return k.kept(ctx, body, r, func() (*call.Progress, error) { return k.Progress(ctx, body, c.Progress.IDs(), r) })
}

// EndedAt returns the states at which handlers have ended in the open cycle, if they differ from that of the pass.
func (k Keeper) EndedAt(ctx context.Context, c *Cycle, body *object.Body, r report.Reporter) (map[string]object.Essence, error) {
	if !c.Reason.IsChange() {
		return nil, nil
	}
	kept, err := k.kept(ctx, body, r, func() (*call.Progress, error) { return c.Progress, nil })
	if err != nil || kept == nil {
		return nil, err
	}
	states := map[string]object.Essence{}
	for _, id := range c.Progress.IDs() {
		state := stateAt(kept, position(kept, id))
		if c.hasEnded(id) && !object.Equal(state, c.New) {
			states[id] = state
		}
	}
	return states, nil
}

// Unknown returns the names of the records on the object that belong to none of the handlers
// with the ids.
func (k Keeper) Unknown(ctx context.Context, body *object.Body, ids []string) (names []string, err error) {
	if lister, ok := k.Storages.Progress.(storage.RecordLister); ok {
		call.Lend(ctx, func() { names, err = lister.UnknownRecords(ctx, body, ids) })
	}
	return names, err
}

// IsRecord reports whether the annotation holds a record of the operator.
func (k Keeper) IsRecord(annotation string) bool {
	essence := object.Essence{"metadata": map[string]any{"annotations": map[string]any{annotation: "a"}}}
	return !object.Equal(essence, k.clear(essence))
}

// ignoreUnreadable reports a stored value that cannot be read, once per object, and
// drops its error; it returns all other errors.
func ignoreUnreadable(body *object.Body, err error, r report.Reporter) error {
	var broken *storage.BrokenError
	if !errors.As(err, &broken) {
		return err
	}
	if len(r.Object.Replace("unreadable "+broken.Where+": ", broken.Error())) > 0 {
		r.Log.Error(err, "A stored value of the object cannot be read and counts as absent.")
		r.Event(body, report.Warning, "UnreadableState", broken.Error()+"; it counts as absent")
	}
	return nil
}

// Continues reports whether a cycle is still open on a version that others may have written: another
// operator, or this one in a write whose response was lost. The base does not tell that alone,
// because it can be the same after the end: a change was taken back, or was handled in two cycles, or
// the next cycle has the same base.
//
// A cycle is known by its token, once a handler has ended in it, and by the times at which its
// handlers began. Without any record, it counts as open.
func (k Keeper) Continues(ctx context.Context, c *Cycle, body *object.Body, r report.Reporter) (bool, error) {
	base, _, err := k.Base(ctx, body, r)
	if err != nil || !object.Equal(base, c.Base) {
		return false, err
	}
	stored := c.Progress.Stored()
	if k.cycles() != nil && stored.HasTokens() {
		open, err := k.fetchCycle(ctx, body)
		if err := ignoreUnreadable(body, err, r); err != nil {
			return false, err
		}
		if open == nil || !stored.HasToken(open.Token) {
			return false, nil
		}
	}
	ids := stored.IDs()
	for _, id := range ids {
		now, err := k.Record(ctx, body, id, r)
		if err != nil {
			return false, err
		}
		state := c.Progress.Load(id)
		if now != nil && (now.Started.Equal(state.Stored().Started) || now.Started.Equal(state.Started)) {
			return true, nil
		}
	}
	return len(ids) == 0, nil
}

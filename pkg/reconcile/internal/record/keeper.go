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

// Stored is what is stored on an object, and the essence that is compared with it.
type Stored struct {
	// Base is the essence that was last handled; Old is the same without the operator's own records.
	// Nil means that the object was never handled.
	Base, Old object.Essence
	// New is the present essence.
	New object.Essence
	// Progress has the records of the handlers of changes.
	Progress *call.Progress
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
	if records := s.Progress.Stored(); records.HasOpen(cause.Create) || records.HasOpen(cause.Update) {
		s.Open, err = k.kept(ctx, body, r, func() (*call.Progress, error) { return s.Progress, nil })
	}
	return s, err
}

// Base returns the stored essence that was last handled, as it is and without the operator's
// own records. It returns nil if the object was never handled.
func (k Keeper) Base(ctx context.Context, body *object.Body, r report.Reporter) (base, old object.Essence, err error) {
	base, err = k.Storages.DiffBase.Fetch(ctx, body)
	if err := ignoreUnreadable(body, err, r); err != nil {
		return nil, nil, err
	}
	return base, k.clear(base), nil
}

// Record returns the record of a handler, or nil if there is none.
func (k Keeper) Record(ctx context.Context, body *object.Body, id string, r report.Reporter) (*storage.Record, error) {
	record, err := k.Storages.Progress.Fetch(ctx, body, id)
	if err := ignoreUnreadable(body, err, r); err != nil {
		return nil, err
	}
	return record, nil
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
	return progress, k.leaveOver(ctx, body, progress, r)
}

// Unknown returns the names of the records on the object that belong to none of the handlers
// with the ids.
func (k Keeper) Unknown(body *object.Body, ids []string) []string {
	lister, ok := k.Storages.Progress.(storage.RecordLister)
	if !ok {
		return nil
	}
	return lister.UnknownRecords(body, ids)
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

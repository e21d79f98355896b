package reconcile

import (
	"context"
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/storage"
)

// intent is what a pass wants to be written, in terms that survive a conflict:
// it is turned into patches against whatever version of the object is the
// freshest, as often as it takes. What the handlers want to be written is beside
// it, in memory.unsent.
type intent struct {
	// cycle is what the bookkeeping is about; nil: there is none.
	cycle *cycle
	// base is the last handled essence when the intent was made, to notice that
	// somebody else has finished the cycle meanwhile.
	base object.Essence
	// stopping: the operator stops. If others write to the object by then, it is
	// theirs to end the cycle.
	stopping bool
	// sweep: the records that are left are none of an open cycle's.
	sweep bool

	hold    bool // add the finalizer
	release bool // remove the finalizer, when nothing keeps the cycle open
	awaits  bool // a daemon keeps it open

	// foreign tells that the object is not the version that the intent was made
	// for: others may have written to it.
	foreign bool
	// finished tells that somebody else has finished the cycle meanwhile.
	finished bool
	// unanswered is what was tried to be written for the handlers, and may have
	// been committed without an answer.
	unanswered []attempt
}

// ends tells whether the cycle ends with this write.
func (in *intent) ends() bool {
	return in.cycle != nil && !in.awaits && !(in.stopping && in.foreign) && in.cycle.progress.Done()
}

// stuck tells whether a failed deletion handler holds the object.
func (in *intent) stuck() bool {
	return in.cycle != nil && in.cycle.Reason == cause.Delete && slices.ContainsFunc(in.cycle.handlers, in.holds)
}

func (in *intent) holds(d *handler.Declaration) bool {
	return d.Hold && in.cycle.progress.Load(d.ID).Failure
}

// frees tells whether the finalizer goes with this write.
func (in *intent) frees() bool {
	return in.release && !in.awaits && !in.stuck() && (in.cycle == nil || in.cycle.progress.Done())
}

// frees the object for good, if our finalizer is the last one.
func (p *pass) lastHold(in *intent, body *object.Body) bool {
	finalizers := body.Finalizers()
	return in.frees() && body.Deleting() && len(finalizers) == 1 && finalizers[0] == p.Settings.Persistence.Finalizer
}

// contributed is the merge patch of everything that handlers want to be written.
// What one of them wants but cannot get is that handler's failure.
func (p *pass) contributed(in *intent, body *object.Body) map[string]any {
	if len(p.memory.unsent) == 0 {
		return nil
	}
	wanted := body.Raw()
	p.memory.unsent = slices.DeleteFunc(p.memory.unsent, func(c execution.Edit) bool {
		merge, err := c.Patch.Resolve(wanted)
		if err != nil {
			p.blame(in, c, err)
			return true
		}
		if c.Result != nil {
			merge = withResult(merge, c.ID, c.Result)
		}
		if c.StatusWritten {
			merge, _ = patch.SplitStatus(merge)
		}
		wanted = patch.ApplyMerge(wanted, merge)
		return false
	})
	return patch.Difference(body.Raw(), wanted)
}

func withResult(merge map[string]any, id string, result any) map[string]any {
	into := storage.Patch(maps.Clone(merge))
	if into == nil {
		into = storage.Patch{}
	}
	if status, ok := into["status"].(map[string]any); ok {
		into["status"] = maps.Clone(status)
	}
	into.Set(object.Path{"status", id}, result)
	return into
}

// bookkeeping is the merge patch of everything that we keep on the object, to be
// applied after what the handlers want to be written.
func (p *pass) bookkeeping(ctx context.Context, in *intent, body *object.Body, theirs map[string]any) (storage.Patch, error) {
	into := storage.Patch{}
	p.finalizers(in, object.NewBody(patch.ApplyMerge(body.Raw(), theirs)), into)
	if in.cycle == nil || p.lastHold(in, body) {
		return into, nil
	}
	if in.finished {
		return into, nil
	}
	if in.ends() || in.sweep {
		return into, p.endCycle(ctx, in, body, into)
	}
	return into, p.keepCycle(ctx, in, body, into)
}

// endCycle forgets the progress, and remembers what was handled.
func (p *pass) endCycle(ctx context.Context, in *intent, body *object.Body, into storage.Patch) error {
	s, c := p.Settings.Persistence, in.cycle
	if in.stuck() {
		return p.keepCycle(ctx, in, body, into)
	}
	for _, id := range c.progress.IDs() {
		if err := s.Progress.Purge(ctx, body, into, id); err != nil {
			return err
		}
	}
	if keeper, ok := s.DiffBase.(storage.CycleBase); ok {
		if err := keeper.PurgeCycle(ctx, body, into); err != nil {
			return err
		}
	}
	// Neither an object without a change nor one that is going needs a new base.
	if in.sweep || c.Reason == cause.Delete || (c.Old != nil && object.Equal(c.Old, c.first)) {
		return nil
	}
	return p.storeBase(ctx, body, into, c.first)
}

// storeBase remembers what was handled, and says so once where it can remember
// only hashes of it.
func (p *pass) storeBase(ctx context.Context, body *object.Body, into storage.Patch, essence object.Essence) error {
	diffBase := p.Settings.Persistence.DiffBase
	if hasher, ok := diffBase.(storage.Hasher); ok {
		if reason := hasher.Hashes(body, into, essence); reason != storage.NotHashed && p.memory.once("hashed") {
			p.log.Info("Only hashes of the handled state are kept: changes are noticed, but old values are unknown, and Kopf cannot take this object back.", "reason", reason)
		}
	}
	return diffBase.Store(ctx, body, into, essence)
}

// keepCycle stores the progress of the handlers that were called. A record that
// somebody else has moved on meanwhile stands.
func (p *pass) keepCycle(ctx context.Context, in *intent, body *object.Body, into storage.Patch) error {
	s, c, stands := p.Settings.Persistence, in.cycle, false
	for _, id := range c.progress.Dirty() {
		overtaken, err := p.overtaken(ctx, in, id)
		stands = stands || overtaken
		if err == nil && !overtaken {
			err = s.Progress.Store(ctx, body, into, id, &c.progress.Load(id).Record)
		}
		if err != nil {
			return err
		}
	}
	if stands { // and so does the essence that their cycle has begun with
		return nil
	}
	return p.keepFirst(ctx, c, body, into)
}

// finalizers adds or removes ours, and keeps everybody else's.
func (p *pass) finalizers(in *intent, body *object.Body, into storage.Patch) {
	ours, present := p.Settings.Persistence.Finalizer, body.Finalizers()
	held := slices.Contains(present, ours)
	switch {
	case in.hold && !held && !body.Deleting():
		into.Set(object.Path{"metadata", "finalizers"}, anySlice(append(present, ours)))
	case in.frees() && held:
		present = slices.DeleteFunc(present, func(f string) bool { return f == ours })
		into.Set(object.Path{"metadata", "finalizers"}, anySlice(present))
	}
}

func anySlice(texts []string) []any {
	items := make([]any, 0, len(texts))
	for _, text := range texts {
		items = append(items, text)
	}
	return items
}

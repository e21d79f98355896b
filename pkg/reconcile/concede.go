package reconcile

import (
	"context"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// concede looks at what is recorded of the cycle on a version that others may
// have written: another operator, or ourselves in a write whose answer was lost.
// What is recorded stands, and with our own record of the same attempt falls what
// its handler wants to be written: an attempt has one outcome, as a whole.
func (p *pass) concede(ctx context.Context, in *intent) error {
	if !in.foreign || in.cycle == nil {
		return nil
	}
	var err error
	if in.finished, err = p.finished(ctx, in); err != nil {
		return err
	}
	p.memory.unsent = slices.DeleteFunc(p.memory.unsent, func(c execution.Edit) bool {
		if err != nil || !in.cycle.progress.Has(c.ID) {
			return false // an event handler's: it has no records
		}
		var overtaken bool
		overtaken, err = p.overtaken(ctx, in, c.ID)
		return overtaken && err == nil || in.finished
	})
	return err
}

// finished tells whether the whole cycle was finished since the intent was made.
func (p *pass) finished(ctx context.Context, in *intent) (bool, error) {
	base, err := p.fetchBase(ctx, p.body)
	if err != nil {
		return false, err
	}
	released := in.cycle.Reason == cause.Delete && !slices.Contains(p.body.Finalizers(), p.Settings.Persistence.Finalizer)
	if !released && object.Equal(base, in.base) {
		return false, nil
	}
	p.log.V(1).Info("The same cycle is finished already; what is recorded stands.")
	return true, nil
}

// overtaken tells whether the record of a handler was moved on since then.
func (p *pass) overtaken(ctx context.Context, in *intent, id string) (bool, error) {
	if !in.foreign {
		return false, nil
	}
	theirs, err := p.Settings.Persistence.Progress.Fetch(ctx, p.body, id)
	if err := p.tolerate(p.body, err); err != nil {
		return false, err
	}
	return !theirs.Equal(in.cycle.progress.Load(id).Stored()), nil
}

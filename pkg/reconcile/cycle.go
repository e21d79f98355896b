package reconcile

import (
	"context"
	"errors"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/storage"
)

// cycle is the handling of one change of one object, from its detection until
// all handlers have finished. It can take many passes, and survives restarts.
type cycle struct {
	handler.Cause
	// first is the essence of the cycle's first pass. It becomes the base when
	// the cycle ends: what changes while the cycle runs is the next change.
	first object.Essence
	// base is the essence that was handled last, as it is stored.
	base object.Essence
	// called tells that a handler was called in this pass.
	called bool
	// unwritten are the handlers that have succeeded, if what they want to be
	// written to the object can be.
	unwritten []string
	// resumed tells that the cycle was begun by an earlier pass.
	resumed  bool
	progress *execution.Progress
	handlers registry.Handlers // those to be called for this change
	// companions are the daemons and timers that the object should have now.
	companions registry.Handlers

	inScope  bool // the object is any business of the handlers
	wanted   bool // some handler needs the finalizer on it
	held     bool // our finalizer is on it
	deleting bool
}

// blind tells that nothing is to be handled: the object is none of our business,
// or nothing has happened to it.
func (c *cycle) blind() bool { return !c.inScope || !c.Reason.Handled() }

// mustBeHeld tells that the finalizer has to be there before anything else.
func (c *cycle) mustBeHeld() bool { return c.wanted && !c.held && !c.deleting }

// detect compares the object with what was handled last.
func (p *pass) detect(ctx context.Context) (*cycle, error) {
	c := &cycle{deleting: p.body.Deleting(), held: slices.Contains(p.body.Finalizers(), p.Settings.Persistence.Finalizer)}
	c.CallContext, p.foreign = p.subject(), false
	if len(p.changing) > 0 {
		if err := p.compare(ctx, c); err != nil {
			return nil, err
		}
		c.inScope = p.changing.InScope(&c.Cause)
		c.wanted = p.changing.HoldDeletion(&c.Cause)
		if c.Reason.Handled() {
			c.handlers = p.selected(c)
		}
	}
	p.enlist(c)
	return c, nil
}

// compare finds out what has happened to the object.
func (p *pass) compare(ctx context.Context, c *cycle) error {
	s := p.Settings.Persistence
	var err error
	if c.base, err = p.fetchBase(ctx, p.body); err != nil {
		return err
	}
	if c.base != nil {
		c.Old = s.Progress.Clear(c.base)
	}
	c.New = s.Progress.Clear(s.DiffBase.Build(p.body, p.fields))
	if c.progress, err = p.loadProgress(ctx, p.body); err != nil {
		return err
	}
	c.Diff = diff.Compute(essence(c.Old), essence(c.New), diff.Full)
	change := cause.Never
	if c.Old != nil {
		change = cause.Same
		if len(c.Diff) > 0 {
			change = cause.Changed
		}
	}
	if err := p.reopen(ctx, c, &change); err != nil {
		return err
	}
	initial := p.memory.initial.Load() && !p.memory.handled
	if !p.memory.looked {
		p.memory.looked, p.memory.inherited = true, initial && len(c.progress.Stored()) > 0
	}
	c.Reason, c.Initial = cause.Detect(cause.Observation{
		Deleting: c.deleting, Held: c.held, Change: change, Initial: initial,
	})
	return nil
}

// essence keeps a nil essence from becoming an empty mapping in an interface.
func essence(e object.Essence) any {
	if e == nil {
		return nil
	}
	return e
}

// reopen finds the essence with which an unfinished cycle began.
func (p *pass) reopen(ctx context.Context, c *cycle, change *cause.Change) error {
	c.first = c.New
	purpose := cause.Create
	if c.Old != nil {
		purpose = cause.Update
	}
	if !c.progress.HasOpen(purpose) {
		return nil // whatever is stored belongs to a cycle that has ended
	}
	first, err := p.fetchFirst(ctx, c)
	if err != nil || first == nil {
		return err
	}
	c.first, c.resumed = p.Settings.Persistence.Progress.Clear(first), true
	if *change == cause.Same {
		// The change was taken back while it was being handled. The handlers
		// that have seen it must also see it go: the cycle ends as it began,
		// and the way back is the next change.
		*change = cause.Changed
	}
	return nil
}

// selected are the handlers for this change. Where the object has changed since
// the cycle began, handlers are called for what has happened both until then and
// until now: what is new since then is the next cycle's business, and what is
// not there any more is nobody's.
func (p *pass) selected(c *cycle) registry.Handlers {
	selected := p.changing.Selected(&c.Cause)
	if !p.memory.inherited && len(p.memory.said) > 0 {
		selected = selected.Where(func(d *handler.Declaration) bool { return d.Kind != handler.OnResume || !p.memory.wasFinished(d.ID) })
	}
	if !c.resumed || c.Reason != cause.Update || object.Equal(c.first, c.New) {
		return selected
	}
	began := c.Cause
	began.New, began.Diff = c.first, diff.Compute(essence(c.Old), essence(c.first), diff.Full)
	return selected.Where(func(d *handler.Declaration) bool { return d.Selects(&began) })
}

// enter makes the selected handlers take part. A record that was made for
// another reason counts only for resuming handlers, which are mixed into
// whatever happens; any other handler has not seen this change.
func (c *cycle) enter() {
	for _, d := range c.handlers {
		c.progress.Include(d.ID, c.Reason, d.Kind == handler.OnResume && c.Reason != cause.Delete)
	}
}

// fetchBase is the essence that was handled last. An unreadable one is reported
// and counts as absent.
func (p *pass) fetchBase(ctx context.Context, body *object.Body) (object.Essence, error) {
	base, err := p.Settings.Persistence.DiffBase.Fetch(ctx, body)
	return base, p.tolerate(body, err)
}

// loadProgress reads how far the handlers are. Sub-handlers are found through
// their parents.
func (p *pass) loadProgress(ctx context.Context, body *object.Body) (*execution.Progress, error) {
	var failure error
	progress := execution.NewProgress(func(id string) *storage.Record {
		record, err := p.Settings.Persistence.Progress.Fetch(ctx, body, id)
		if err := p.tolerate(body, err); err != nil {
			failure = errors.Join(failure, err)
		}
		return record
	})
	for _, d := range p.changing {
		progress.Load(d.ID)
	}
	return progress, failure
}

// tolerate reports what is stored but cannot be read, once, and lets go on
// without it; other errors are returned.
func (p *pass) tolerate(body *object.Body, err error) error {
	var broken *storage.BrokenError
	if err == nil || !errors.As(err, &broken) {
		return err
	}
	if p.memory.once(broken.Error()) {
		p.log.Error(err, "What is stored on the object cannot be read and counts as absent.")
		p.post(body, warning, "UnreadableState", broken.Error()+"; it counts as absent")
	}
	return nil
}

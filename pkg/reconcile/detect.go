package reconcile

import (
	"context"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
)

// cycle is what a pass knows of the handling of one change.
type cycle struct {
	handler.Cause
	// record is the part of it that is kept on the object; nil: the resource has no
	// handlers of changes.
	record     *record.Cycle
	handlers   registry.Handlers // those to be called for this change
	background registry.Handlers // the daemons and timers that the object should have now

	inScope        bool // some handler is for the object, now or later in its life
	needsFinalizer bool
	hasFinalizer   bool
	deleting       bool
}

// nothingToDo reports whether there is nothing to handle: no handler is for the object,
// or nothing has happened to it.
func (c *cycle) nothingToDo() bool { return !c.inScope || !c.Reason.Handled() }

// mustAddFinalizer reports whether the finalizer must be added before anything else.
func (c *cycle) mustAddFinalizer() bool { return c.needsFinalizer && !c.hasFinalizer && !c.deleting }

// detector finds out what has happened to an object, and which handlers it is for. It
// changes nothing, and can be asked about any version of the object.
type detector struct{ target }

// detect compares a version of the object with what was handled last.
func (d detector) detect(ctx context.Context, body *object.Body) (*cycle, error) {
	c := &cycle{deleting: body.Deleting(), hasFinalizer: slices.Contains(body.Finalizers(), d.engine.Settings.Persistence.Finalizer)}
	c.CallContext = d.callArguments(body)
	if len(d.resource.changing) > 0 {
		if err := d.compare(ctx, c, body); err != nil {
			return nil, err
		}
		c.inScope = d.resource.changing.InScope(&c.Cause)
		c.needsFinalizer = d.resource.changing.HoldDeletion(&c.Cause)
		if c.Reason.Handled() {
			c.handlers = d.selectHandlers(c)
			c.record.HoldOnFailure = idsOf(c.handlers.Where(func(h *handler.Declaration) bool { return h.Hold }))
		}
	}
	d.selectBackground(c, body)
	return c, nil
}

// compare finds out what has happened to the object.
func (d detector) compare(ctx context.Context, c *cycle, body *object.Body) error {
	records, r := d.engine.records, &record.Cycle{}
	var err error
	if r.Base, r.Old, err = records.Base(ctx, body, d.report); err != nil {
		return err
	}
	if r.Progress, err = records.Progress(ctx, body, d.resource.ids, d.report); err != nil {
		return err
	}
	c.record, c.Old, c.New = r, r.Old, records.Essence(body, d.resource.fields)
	c.Diff = diff.Compute(toAny(c.Old), toAny(c.New), diff.Full)
	change := cause.Never
	if c.Old != nil {
		change = cause.Same
		if len(c.Diff) > 0 {
			change = cause.Changed
		}
	}
	if err := d.reopen(ctx, c, body, &change); err != nil {
		return err
	}
	initial := d.object.initial.Load() && !d.object.handled
	if !d.object.seen {
		d.object.seen, d.object.startedByPredecessor = true, initial && len(r.Progress.Stored()) > 0
	}
	c.Reason, c.Initial = cause.Detect(cause.Observation{
		Deleting: c.deleting, Held: c.hasFinalizer, Change: change, Initial: initial,
	})
	r.Reason = c.Reason
	return nil
}

// toAny keeps a nil essence from becoming an empty mapping in an interface.
func toAny(e object.Essence) any {
	if e == nil {
		return nil
	}
	return e
}

// reopen finds the essence with which an unfinished cycle began.
func (d detector) reopen(ctx context.Context, c *cycle, body *object.Body, change *cause.Change) error {
	r, purpose := c.record, cause.Create
	r.First = c.New
	if c.Old != nil {
		purpose = cause.Update
	}
	if !r.Progress.HasOpen(purpose) {
		return nil // what is stored belongs to a cycle that has ended
	}
	first, err := d.engine.records.First(ctx, body, r.Progress, d.report)
	if err != nil || first == nil {
		return err
	}
	r.First, r.Resumed = first, true
	if *change == cause.Same {
		// The change was taken back while it was being handled. The handlers that
		// have seen it must also see it go: the cycle ends as it began, and the way
		// back is the next change.
		*change = cause.Changed
	}
	return nil
}

// selectHandlers returns the handlers for this change. Where the object has changed
// since the cycle began, handlers are called for what has happened both until then and
// until now: what is new since then is handled by the next cycle, and what is not there
// anymore by none.
func (d detector) selectHandlers(c *cycle) registry.Handlers {
	selected := d.resource.changing.Selected(&c.Cause)
	if !d.object.startedByPredecessor && len(d.object.reported) > 0 {
		selected = selected.Where(func(h *handler.Declaration) bool { return h.Kind != handler.OnResume || !d.object.wasFinished(h.ID) })
	}
	r := c.record
	if !r.Resumed || c.Reason != cause.Update || object.Equal(r.First, c.New) {
		return selected
	}
	began := c.Cause
	began.New, began.Diff = r.First, diff.Compute(toAny(c.Old), toAny(r.First), diff.Full)
	return selected.Where(func(h *handler.Declaration) bool { return h.Selects(&began) })
}

// include makes the selected handlers take part in the cycle. A record that was made
// for another reason counts only for resuming handlers, which are mixed into all
// others; any other handler has not seen this change.
func (c *cycle) include() {
	for _, d := range c.handlers {
		c.record.Progress.Include(d.ID, c.Reason, d.Kind == handler.OnResume && c.Reason != cause.Delete)
	}
}

// selectBackground finds the daemons and timers that the object should have, and
// whether the finalizer is needed for them: as long as the end of a daemon is awaited.
func (d detector) selectBackground(c *cycle, body *object.Body) {
	if len(d.resource.background) == 0 {
		return
	}
	if !c.deleting {
		whole := &handler.Cause{CallContext: c.CallContext, New: body.Raw()}
		c.background = d.resource.background.Where(func(h *handler.Declaration) bool { return h.InScope(whole) })
	}
	if len(c.background) == 0 && d.object.background == nil {
		return
	}
	b := d.backgroundOf(body)
	c.needsFinalizer = c.needsFinalizer || b.areDaemonsRunning() || slices.ContainsFunc(c.background, b.group.NeedsFinalizer)
}

// backgroundOf returns the background of the object. Objects without one cost nothing.
func (d detector) backgroundOf(body *object.Body) *background {
	s := d.object
	if s.background == nil {
		b := &background{engine: d.engine, resource: d.resource, key: d.key, uid: body.UID(), object: s, seen: body.Snapshot().Packed()}
		b.group = d.engine.supervisor.NewGroup(b)
		s.background = b
	}
	return s.background
}

func idsOf(handlers registry.Handlers) []string {
	var ids []string
	for _, d := range handlers {
		ids = append(ids, d.ID)
	}
	return ids
}

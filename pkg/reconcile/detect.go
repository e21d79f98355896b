package reconcile

import (
	"context"
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
	"github.com/kopf-go/kopf/pkg/recording"
)

// cycle is a pass's view of the handling of one change.
type cycle struct {
	handler.Cause
	// record is the part that is stored on the object. It is nil if the resource has
	// no change handlers.
	record     *record.Cycle
	handlers   registry.Handlers  // to be called for this change
	runner     *execution.Runner  // calls them; nil if there is nothing to do
	calls      triggeredCalls     // that do not belong to this change
	packed     *record.Packed     // the essences, while the code of many handlers runs
	background registry.Handlers  // the daemons and timers that the object should have now
	misfits    []misfit           // handlers whose Go type the object does not fit
	requests   *requests.Requests // of people, in annotations

	inScope        bool // some handler applies to the object, now or later
	needsFinalizer bool
	// unserved is set if a deletion handler of another version matches, which is not called.
	unserved     bool
	hasFinalizer bool
	deleting     bool
}

// nothingToDo reports whether there is nothing to handle: no handler applies to the object,
// or nothing has happened to it.
func (c *cycle) nothingToDo() bool { return !c.inScope || !c.Reason.Handled() }

// isOpen reports whether a handler takes part in the cycle and has not finished.
func (c *cycle) isOpen(id string) bool {
	return !c.nothingToDo() && c.record.Progress.IsOpen(id) || c.calls.isOpen(id)
}

// mustAddFinalizer reports whether the finalizer must be added, before any handler is called.
func (c *cycle) mustAddFinalizer() bool { return c.needsFinalizer && !c.hasFinalizer && !c.deleting }

// detector determines what has happened to an object, and which handlers apply. It has no
// side effects, and can check any version of the object.
type detector struct{ target }

// detect compares a version of the object with the state that was last handled.
func (d detector) detect(ctx context.Context, body *object.Body) (*cycle, error) {
	c := &cycle{deleting: body.Deleting(), hasFinalizer: slices.Contains(body.Finalizers(), d.engine.Settings.Persistence.Finalizer)}
	c.CallContext = d.callArguments(body)
	if len(d.resource.changing) > 0 {
		if err := d.compare(ctx, c, body); err != nil {
			return nil, err
		}
		c.inScope = d.resource.changing.InScope(&c.Cause)
		reruns := append(d.readRequests(c, body), d.outdated(c)...)
		if c.Reason.Handled() {
			selected := d.withReruns(c, d.selectHandlers(c), reruns)
			c.requests.Apply(c.record.Progress, requests.Handlers{Due: selected, Declared: d.resource.declared}, c.Reason)
			c.record.Skipped = c.requests.HasSkipped()
			c.handlers = d.setMisfitsAside(c, selected)
			c.inScope = c.inScope || len(c.handlers) > 0 // a change that is taken back may leave the scope
			c.record.IsDue = func(id string, before, after object.Essence) bool { return d.isDue(c, id, before, after) }
			c.record.HoldOnFailure = idsOf(c.handlers.Where(func(h *handler.Declaration) bool { return h.Hold }))
		} else {
			c.requests.Apply(c.record.Progress, requests.Handlers{Declared: d.resource.declared}, c.Reason)
		}
		c.unserved = d.resource.unserved.HoldDeletion(&c.Cause)
		c.needsFinalizer = (c.unserved || d.resource.changing.HoldDeletion(&c.Cause)) && d.canHoldDeletion(c)
	}
	d.selectBackground(c, body)
	return c, nil
}

// outdated returns the handlers that must be called again because of their revisions. An object
// to which nothing has happened is updated for them, with old and new values that are equal.
func (d detector) outdated(c *cycle) []string {
	ids := d.engine.revisions.Due(d.resource.revised, d.subject(c))
	if len(ids) > 0 {
		c.Reason, c.record.Reason = cause.Update, cause.Update
	}
	return ids
}

// subject returns the object as the revisions of handlers see it.
func (t *target) subject(c *cycle) revision.Subject {
	return revision.Subject{Key: t.key, Cause: &c.Cause, Progress: c.record.Progress}
}

// compare determines what has happened to the object.
func (d detector) compare(ctx context.Context, c *cycle, body *object.Body) error {
	records, r := d.engine.records, &record.Cycle{Declared: d.resource.ids}
	var err error
	if r.Base, r.Old, err = records.Base(ctx, body, d.report); err != nil {
		return err
	}
	if r.Progress, err = records.Progress(ctx, body, d.resource.ids, d.report); err != nil {
		return err
	}
	if c.deleting {
		r.Progress.Restore(d.object.writes.Unstored())
	}
	r.New = records.Essence(body, d.resource.fields)
	c.record = r
	c.Old, c.New, c.Diff = differenceIn(r)
	initial := d.object.initial.Load() && !d.object.handled
	if !d.object.seen {
		d.object.seen, d.object.startedByPredecessor = true, initial && len(r.Progress.Stored().IDs()) > 0
		d.object.copied = !initial && (r.Base != nil || len(r.Progress.Stored().IDs()) > 0)
		d.noteUndeclared(body, r)
	}
	c.Reason, c.Initial = cause.Detect(cause.Observation{
		Deleting: c.deleting, Held: c.hasFinalizer, Change: c.change(), Initial: initial,
	})
	r.Reason = c.Reason
	if r.Progress.Stored().HasOpen(c.Reason) {
		return records.Reopen(ctx, r, body, d.report)
	}
	return nil
}

// noteUndeclared looks for what handlers that are not declared have left on the object.
func (d detector) noteUndeclared(body *object.Body, r *record.Cycle) {
	known := append(r.Progress.IDs(), idsOf(d.resource.triggered)...)
	d.engine.undeclared.Note(d.resource.Name, d.engine.records.Unknown(body, known), d.resource.ids)
	if !d.resource.ensures() && len(convergence.ReadPlaces(body)) > 0 {
		d.engine.undeclared.NoteChild(d.resource.Name, "")
	}
}

// differenceIn returns the essences that a cycle is about, and their difference.
func differenceIn(c *record.Cycle) (before, after object.Essence, difference diff.Diff) {
	return c.Old, c.New, diff.Compute(c.Old, c.New, diff.Full)
}

// change compares the essence with the one that was last handled. An open cycle counts as a
// change although it was taken back: the handlers that have seen it must also see its
// reversal.
func (c *cycle) change() cause.Change {
	switch {
	case c.Old == nil:
		return cause.Never
	case len(c.Diff) > 0 || c.record.Progress.Stored().HasOpen(cause.Update):
		return cause.Changed
	default:
		return cause.Same
	}
}

// selectHandlers returns the handlers for this change: those that are due for the difference
// between the base and the current state, and those that were called for a change that was
// taken back before they succeeded.
func (d detector) selectHandlers(c *cycle) registry.Handlers {
	candidates := d.resource.changing
	if c.Reason == cause.Update && len(c.Diff) == 0 {
		candidates = candidates.OfKind(handler.OnResume)
	}
	selected := candidates.Selected(&c.Cause)
	if !d.object.startedByPredecessor && len(d.object.reported) > 0 {
		selected = selected.Where(func(h *handler.Declaration) bool { return h.Kind != handler.OnResume || !d.object.wasFinished(h.ID) })
	}
	return append(selected, d.resource.changing.TakenBack(&c.Cause, selected, c.record.Progress.IsRetrying)...)
}

// isDue reports whether a handler is for the change between two states.
func (d detector) isDue(c *cycle, id string, before, after object.Essence) bool {
	change := diff.Compute(before, after, diff.Full)
	if len(change) == 0 {
		return false
	}
	between := handler.Cause{
		CallContext: d.callArguments(bodyAt(c.CallContext.Body, after)),
		Reason:      cause.Update, Old: before, New: after, Diff: change,
	}
	if before == nil {
		between.Reason = cause.Create
	}
	return slices.ContainsFunc(d.resource.changing, func(h *handler.Declaration) bool { return h.ID == id && h.Selects(&between) })
}

// bodyAt returns the object with the fields of a former state, for filters of values. Filters of
// labels and annotations apply to the current ones.
func bodyAt(current *object.Body, state object.Essence) *object.Body {
	raw := maps.Clone(current.Raw())
	maps.DeleteFunc(raw, func(key string, _ any) bool { return !slices.Contains(notInEssence, key) })
	for key, value := range state {
		if key != "metadata" {
			raw[key] = value
		}
	}
	return object.NewBody(raw)
}

// notInEssence contains the fields of objects that an essence does not have entirely.
var notInEssence = []string{"apiVersion", "kind", "metadata", "status"}

// include adds the selected handlers to the cycle, except those that cannot be called.
func (c *cycle) include() {
	for _, d := range c.handlers {
		if c.record.Progress.WhyAside(d.ID) == nil {
			c.record.Progress.Include(d.ID, c.Reason, c.keepsRecord(d))
		}
	}
}

// keepsRecord reports whether a record with another reason counts for this cycle. It does
// only for resume handlers, which are called together with all others; any other handler has
// not seen this change.
func (c *cycle) keepsRecord(d *handler.Declaration) bool {
	return d.Kind == handler.OnResume && c.Reason != cause.Delete
}

// hasFinished reports whether a handler has finished in this cycle.
func (c *cycle) hasFinished(d *handler.Declaration) bool {
	state := c.record.Progress.Load(d.ID)
	return state.HasEnded(c.Reason) || state.Finished() && c.keepsRecord(d)
}

// selectBackground selects the daemons and timers that the object must have. It also
// determines whether they need the finalizer, because the object must wait for a daemon.
func (d detector) selectBackground(c *cycle, body *object.Body) {
	if len(d.resource.background) == 0 {
		return
	}
	if !c.deleting {
		whole := &handler.Cause{CallContext: c.CallContext, New: body.Raw()}
		c.background = d.withoutMisfits(c, d.resource.background.Where(func(h *handler.Declaration) bool { return h.InScope(whole) }))
	}
	b := d.backgroundOf(body, len(c.background) > 0)
	if b == nil {
		return
	}
	c.needsFinalizer = c.needsFinalizer || b.areDaemonsRunning() || slices.ContainsFunc(c.background, b.group.NeedsFinalizer)
}

// backgroundOf returns the background of the object. It creates it on first use: for handlers
// that match, or that are still stopping because the object seemed to be gone.
func (d detector) backgroundOf(body *object.Body, needed bool) *background {
	s := d.object
	if s.background != nil {
		return s.background
	}
	b := &background{engine: d.engine, resource: d.resource, key: d.key, uid: body.UID(), object: s}
	if !needed && !d.engine.supervisor.IsStopping(b.Identity()) {
		return nil
	}
	b.seen = body.Snapshot().Packed()
	b.group = d.engine.supervisor.NewGroup(b)
	s.background = b
	return b
}

func idsOf(handlers registry.Handlers) []string {
	var ids []string
	for _, d := range handlers {
		ids = append(ids, d.ID)
	}
	return ids
}

// recordSituation gives what was detected to the recorder.
func (d detector) recordSituation(c *cycle) {
	s := recording.Situation{Held: c.hasFinalizer, Initial: c.Initial}
	var selected registry.Handlers
	if c.record != nil {
		s.Open = c.record.Progress.Stored().HasOpen(cause.Update)
		s.Retrying = idsOf(d.resource.changing.Where(func(h *handler.Declaration) bool { return c.record.Progress.IsRetrying(h.ID, c.Reason) }))
		selected = d.selectHandlers(c)
	}
	d.engine.Recorder.Pass(d.resource.Resource.Resource, d.resource.declared, c.Cause, selected, c.background, s)
}

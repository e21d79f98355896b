package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/verdict"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/undeclared"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Inspector finds out what passes over objects would do, without an operator: it makes the
// detection of a pass, and nothing else. It calls filters, and no handlers. Indices, memos, and
// the client do not exist; handlers whose filters need them are undecidable.
//
// It is not safe for concurrent use, and not beside an operator with the same indices.
type Inspector struct {
	engine    *Engine
	resources map[string]*resource
}

// NewInspector returns an Inspector for the handlers of an operator.
func NewInspector(handlers registry.Handlers, s settings.Settings) *Inspector {
	e := New(Config{Handlers: handlers, Settings: s, Logger: logr.Discard()})
	e.inspecting = true
	for _, d := range handlers.OfKind(handler.OnIndex) {
		index.SetAvailable(d.Table, false)
	}
	return &Inspector{engine: e, resources: map[string]*resource{}}
}

// Inspection is what a pass would find. Slices and maps can be nil.
type Inspection struct {
	// Body is the object.
	Body *object.Body
	// Reason is what has happened to the object, for an operator that knows it already.
	Reason cause.Reason
	// Diff is the difference from the state that was handled last.
	Diff diff.Diff
	// Old is the state that was handled last, and New the one to be handled.
	Old, New object.Essence
	// Open is set if the handling of a change has begun and has not ended.
	Open bool
	// WasHandled is set if the object has been handled before.
	WasHandled bool
	// InScope is set if a handler of changes applies to the object, now or later.
	InScope bool
	// HasFinalizer and NeedsFinalizer are about the finalizer of the operator.
	HasFinalizer, NeedsFinalizer bool
	// HeldByFailure is the id of the failed deletion handler that holds the object, if any.
	HeldByFailure string
	// Suspension is the request that suspends the object, if any.
	Suspension requests.Suspension
	// Requests are those that no operator has honored yet, and what would come of them.
	Requests []RequestNote
	// Undeclared are the names of records on the object whose handlers are not declared.
	// Remarks say what can be done about them, by the names.
	Undeclared []string
	Remarks    map[string]string
	// Unreadable are the errors of stored values that cannot be read.
	Unreadable []error
	// Handlers has each declaration for the resource, in order.
	Handlers []InspectedHandler
	// Failed has the former permanent failures of handlers, as the conditions of the object say, and
	// Forgotten those of handlers that are not declared, which no longer count for an operator.
	Failed, Forgotten map[string]string
	// Records are the stored ones, by the ids of handlers, including sub-handlers.
	Records map[string]storage.Record
}

// InspectedHandler is what a pass would find about one declaration.
type InspectedHandler struct {
	*handler.Declaration

	// Undecidable is why it is unknown whether the handler applies; nil if it is known. All
	// other fields are unknown then.
	Undecidable error
	// OutOfScope is the filter because of which it does not apply to the object at all.
	OutOfScope handler.Mismatch
	// Verdict is about handlers of changes, if something has happened to the object.
	Verdict verdict.Verdict
	// Selected is set if the handler takes part in the handling of what has happened, and if a
	// daemon or timer should run.
	Selected bool
	// Later are the changes since the handler has ended in the open cycle. Again is set if it is called for
	// them when the cycle has ended.
	Later diff.Diff
	Again bool
	// Skips is set if a request will skip the handler, which no operator has honored yet.
	Skips bool
	// Resumes is set if the handler would be called when an operator starts.
	Resumes bool
	// Misfit is why a daemon or timer cannot be called, or nil.
	Misfit error
	// RevisionMark is the revision under which the handler ended last; empty for none.
	// RevisionFailed is set if it failed permanently.
	RevisionMark   string
	RevisionFailed bool
}

// Inspect returns what passes over an object of a resource would find. It returns an error if
// that cannot be known at all.
func (i *Inspector) Inspect(ctx context.Context, found discovery.SelectedResource, raw map[string]any) (*Inspection, error) {
	r := i.resourceOf(found)
	body, err := bodyOf(raw)
	if err != nil {
		return nil, err
	}
	result := &Inspection{Body: body, Suspension: i.engine.requests.Suspension(body, time.Now()), Records: map[string]storage.Record{}}
	undecidable := map[*handler.Declaration]error{}
	now, err := i.detect(ctx, r, body, false)
	if isOfFilters(err) {
		undecidable = i.undecidable(ctx, r, body)
		r = r.only(func(d *handler.Declaration) bool { return undecidable[d] == nil })
		now, err = i.detect(ctx, r, body, false)
	}
	if err != nil {
		return nil, err
	}
	resumed, err := i.detect(ctx, r, body, true)
	if err != nil {
		return nil, err
	}
	if now.Cycle != nil && !now.Reason.Handled() && now.Cycle.Progress.Stored().HasOpen(cause.Resume) {
		now = resumed // by an operator that is running, or was
	}
	result.fill(now)
	result.Failed, result.Forgotten = r.failuresIn(now)
	i.readRecords(ctx, r, body, now, result)
	ends := i.ends(ctx, body, now, result)
	for _, d := range r.Declared {
		one := InspectedHandler{Declaration: d, Undecidable: undecidable[d]}
		if one.Undecidable == nil {
			one.Undecidable = handler.WithRecover(func() error {
				i.judge(&one, r, now, resumed)
				i.compareEnd(&one, r, now, ends[d.ID])
				return nil
			})
		}
		result.Handlers = append(result.Handlers, one)
	}
	return result, nil
}

func (i *Inspector) resourceOf(found discovery.SelectedResource) *resource {
	known := i.resources[found.String()]
	if known == nil {
		known = newResource(watch.NewResource(found, nil), i.engine.Handlers.Where(func(d *handler.Declaration) bool {
			return slices.Contains(found.Selectors, d.Selector) && !d.Kind.IsAdmission() // requests call these, not passes
		}))
		i.resources[found.String()] = known
	}
	return known
}

// only returns the resource with some of its handlers.
func (r *resource) only(kept func(*handler.Declaration) bool) *resource {
	rest := newResource(r.Resource, r.Declared.Where(kept))
	rest.Handlers = r.Handlers.Only(kept)
	return rest
}

// detect makes the detection of a pass. Initial is for an operator that has just started.
func (i *Inspector) detect(ctx context.Context, r *resource, body *object.Body, initial bool) (c *cycle, err error) {
	key, state := keyIn(r, body), &objectState{lifetime: lifetime{seen: true}}
	state.initial.Store(initial)
	t := target{engine: i.engine, resource: r, key: key, object: state, report: i.engine.reporter(key, &state.reported)}
	err = handler.WithRecover(func() (err error) {
		c, err = t.plan(ctx, body)
		return err
	})
	return c, err
}

// isOfFilters reports whether a filter has panicked.
func isOfFilters(err error) bool {
	var panicked *handler.PanicError
	return errors.As(err, &panicked)
}

// undecidable returns the declarations whose filters cannot be evaluated here.
func (i *Inspector) undecidable(ctx context.Context, r *resource, body *object.Body) map[*handler.Declaration]error {
	found := map[*handler.Declaration]error{}
	for _, d := range r.Declared {
		alone := r.only(func(other *handler.Declaration) bool { return other == d })
		if _, err := i.detect(ctx, alone, body, true); isOfFilters(err) {
			found[d] = err
		}
	}
	return found
}

// fill fills in what is about the object.
func (n *Inspection) fill(c *cycle) {
	n.Reason, n.InScope, n.HasFinalizer, n.NeedsFinalizer = c.Reason, c.InScope, c.HasFinalizer, c.NeedsFinalizer
	if c.Cycle == nil {
		return
	}
	n.Old, n.New = c.Old, c.New
	n.Diff, n.WasHandled, n.Open = c.Diff, c.Cycle.Base != nil, c.Cycle.Progress.Stored().HasOpen(c.Reason)
	if c.Reason == cause.Delete {
		n.HeldByFailure = c.Cycle.HeldByFailure()
	}
	if c.Requests != nil {
		n.Requests = c.Requests.Notes
	}
}

// readRecords reads what is stored about handlers.
func (i *Inspector) readRecords(ctx context.Context, r *resource, body *object.Body, c *cycle, n *Inspection) {
	records, ids := i.engine.records, plan.IDsOf(r.Triggered)
	if c.Cycle != nil {
		ids = append(c.Cycle.Progress.IDs(), ids...)
		n.Undeclared, n.Remarks = records.Unknown(body, ids), map[string]string{}
		for _, name := range n.Undeclared {
			n.Remarks[name] = undeclared.Remark(name, r.IDs)
		}
		_, err := records.Storages.DiffBase.Fetch(ctx, body)
		n.addError(err)
	}
	for _, id := range ids {
		stored, err := records.Storages.Progress.Fetch(ctx, body, id)
		n.addError(err)
		if stored != nil {
			n.Records[id] = *stored
		}
	}
}

// ends returns the states at which handlers have ended in the open cycle, if the object has changed since.
func (i *Inspector) ends(ctx context.Context, body *object.Body, c *cycle, n *Inspection) map[string]object.Essence {
	if c.Cycle == nil || !n.Open {
		return nil
	}
	ends, err := record.EndedAt(ctx, i.engine.records, c.Cycle, body, i.engine.reporter(object.Key{}, nil))
	n.addError(err)
	return ends
}

// compareEnd fills in what has changed since the handler has ended.
func (i *Inspector) compareEnd(one *InspectedHandler, r *resource, now *cycle, end object.Essence) {
	if end == nil || !one.Kind.IsChange() {
		return
	}
	one.Later = diff.Compute(end, now.New, diff.Full)
	one.Again = plan.IsDue(r.Changing, now.CallContext, one.ID, end, now.New)
}

func (n *Inspection) addError(err error) {
	if err != nil && !slices.ContainsFunc(n.Unreadable, func(known error) bool { return known.Error() == err.Error() }) {
		n.Unreadable = append(n.Unreadable, err)
	}
}

// judge fills in what is about one handler.
func (i *Inspector) judge(one *InspectedHandler, r *resource, now, resumed *cycle) {
	of := &now.Cause
	if !one.Kind.IsChange() {
		of = &handler.Cause{CallContext: now.CallContext, New: now.CallContext.Body.Raw()}
	}
	one.OutOfScope = of.OutOfScope(one.Declaration)
	switch {
	case one.Kind.IsBackground():
		one.Selected = slices.Contains(now.Background, one.Declaration)
		for _, m := range now.Misfits {
			if m.Handler == one.Declaration {
				one.Misfit = m.Err
			}
		}
	case one.Kind.IsChange():
		one.Verdict = (&target{engine: i.engine, resource: r, object: &objectState{}, report: i.engine.reporter(object.Key{}, nil)}).verdict(now, one.Declaration)
		one.Selected = slices.Contains(now.Handlers, one.Declaration)
		one.Skips = one.Selected && now.WillSkip(one.ID)
		one.Resumes = slices.Contains(resumed.Handlers, one.Declaration) && !one.Selected
		if one.Revision != "" {
			one.RevisionMark, one.RevisionFailed, _ = revision.Read(now.CallContext.Body, i.engine.revisions.Annotation).Of(one.ID)
		}
	default:
		if err := one.Declaration.Misfit(of); err != nil {
			one.Misfit = err
		}
	}
}

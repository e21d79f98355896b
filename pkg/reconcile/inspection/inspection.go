// Package inspection finds out what passes over objects would do, without an operator. It makes their plans,
// and nothing else: it calls filters, and no handlers.
//
// This package carries no compatibility promise.
package inspection

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/internal/reportonce"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/verdict"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/undeclared"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Inspector makes the plans of objects. Indices, memos, and the client do not exist; handlers whose filters need
// them are undecidable.
//
// It is not safe for concurrent use, and not beside an operator with the same indices.
type Inspector struct {
	handlers  registry.Handlers
	settings  settings.Settings
	records   record.Keeper
	requests  *requests.Reader // nil: requests are ignored
	revisions *revision.Reviser
	sorted    map[string]*plan.Handlers // by resource
}

// New returns an Inspector for the handlers of an operator.
func New(handlers registry.Handlers, s settings.Settings) *Inspector {
	s = s.WithDefaults()
	prefix := storage.RequestPrefix(s.Persistence.DiffBase, s.Persistence.Progress)
	i := &Inspector{
		handlers: handlers.Watching(), settings: s, records: record.Keeper{Storages: s.Persistence},
		revisions: &revision.Reviser{Annotation: prefix + "/" + revision.Name}, sorted: map[string]*plan.Handlers{},
	}
	if !s.Requests.Disabled {
		i.requests = requests.NewReader(prefix)
	}
	for _, d := range handlers.OfKind(handler.OnIndex) {
		index.SetAvailable(d.Table, false)
	}
	return i
}

// Object is what a pass over an object would find. Slices and maps can be nil.
type Object struct {
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
	Requests []Note
	// Undeclared are the names of records on the object whose handlers are not declared.
	// Remarks say what can be done about them, by the names.
	Undeclared []string
	Remarks    map[string]string
	// Unreadable are the errors of stored values that cannot be read.
	Unreadable []error
	// Handlers has each declaration for the resource, in order.
	Handlers []Handler
	// Failed has the former permanent failures of handlers, as the conditions of the object say, and
	// Forgotten those of handlers that are not declared, which no longer count for an operator.
	Failed, Forgotten map[string]string
	// Records are the stored ones, by the ids of handlers, including sub-handlers.
	Records map[string]storage.Record
}

// Handler is what a pass would find about one declaration.
type Handler struct {
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
func (i *Inspector) Inspect(ctx context.Context, found discovery.SelectedResource, raw map[string]any) (*Object, error) {
	body, err := bodyOf(raw)
	if err != nil {
		return nil, err
	}
	of := target{i, found.Resource, i.handlersOf(found), body}
	undecidable := map[*handler.Declaration]error{}
	now, err := of.plan(ctx, false)
	if isOfFilters(err) {
		undecidable = of.undecidable(ctx)
		of.handlers = of.handlers.Only(func(d *handler.Declaration) bool { return undecidable[d] == nil })
		now, err = of.plan(ctx, false)
	}
	if err != nil {
		return nil, err
	}
	resumed, err := of.plan(ctx, true)
	if err != nil {
		return nil, err
	}
	if now.Cycle != nil && !now.Reason.Handled() && now.Cycle.Progress.Stored().HasOpen(cause.Resume) {
		now = resumed // by an operator that is running, or was
	}
	result := &Object{Body: body, Suspension: i.requests.Suspension(body, time.Now()), Records: map[string]storage.Record{}}
	result.fill(now)
	result.Failed, result.Forgotten = of.failures(now)
	of.readRecords(ctx, now, result)
	ends := of.ends(ctx, now, result)
	for _, d := range of.handlers.Declared {
		one := Handler{Declaration: d, Undecidable: undecidable[d]}
		if one.Undecidable == nil {
			one.Undecidable = handler.WithRecover(func() error {
				of.judge(&one, now, resumed)
				of.compareEnd(&one, now, ends[d.ID])
				return nil
			})
		}
		result.Handlers = append(result.Handlers, one)
	}
	return result, nil
}

// Note says what came of a request.
type Note = requests.Note

// Rollout counts the objects of one rollout, as they are stored.
type Rollout = revision.Tally

// Count adds an object of a resource to a rollout.
func (i *Inspector) Count(ctx context.Context, found discovery.SelectedResource, raw map[string]any, in *Rollout) error {
	body, err := bodyOf(raw)
	if err != nil {
		return err
	}
	of := target{i, found.Resource, i.handlersOf(found), body}
	p, err := of.plan(ctx, false)
	if err != nil || p.Cycle == nil {
		return err
	}
	return handler.WithRecover(func() error {
		in.Add(i.revisions, p.Subject(of.key()))
		return nil
	})
}

// HasConditions reports whether the operator writes the conditions of the objects of a resource.
func (i *Inspector) HasConditions(found discovery.SelectedResource) bool {
	return i.handlersOf(found).HasConditions
}

// CheckConditions returns the error with which an operator refuses to start, because the objects of a
// resource cannot have the conditions. The definition is nil if it is not a custom resource; an
// operator without the permission to get it checks less.
func (i *Inspector) CheckConditions(found discovery.SelectedResource, definition map[string]any, permitted bool) error {
	return plan.CheckConditions(i.handlersOf(found).Declared, found.Resource, definition, permitted)
}

// handlersOf returns the handlers that passes over the objects of a resource call.
func (i *Inspector) handlersOf(found discovery.SelectedResource) *plan.Handlers {
	known := i.sorted[found.String()]
	if known == nil {
		known = plan.Sort(i.handlers.Where(func(d *handler.Declaration) bool { return slices.Contains(found.Selectors, d.Selector) }))
		i.sorted[found.String()] = known
	}
	return known
}

// target is an object with the handlers of its resource.
type target struct {
	*Inspector

	resource selector.Resource
	handlers *plan.Handlers
	body     *object.Body
}

func (t target) key() object.Key {
	return object.Key{Resource: t.resource.String(), NamespacedName: types.NamespacedName{Namespace: t.body.Namespace(), Name: t.body.Name()}}
}

// plan makes the plan of a pass. Initial is for an operator that has just started.
func (t target) plan(ctx context.Context, initial bool) (p *plan.Plan, err error) {
	f := plan.Facts{
		Key: t.key(), Handlers: t.handlers, Memory: plan.Memory{Initial: initial}, Requests: t.requests, Revisions: t.revisions,
		HasFinalizer: slices.Contains(t.body.Finalizers(), t.settings.Persistence.Finalizer),
		Arguments:    handler.CallContext{Body: t.body, Resource: &t.resource, Logger: logr.Discard(), Memo: unavailableMemo},
	}
	err = handler.WithRecover(func() (err error) {
		if len(t.handlers.Changing) > 0 {
			f.Stored, err = t.records.Read(ctx, t.body, t.handlers.IDs, t.handlers.Fields, silent())
			if err != nil {
				return err
			}
		}
		p = plan.Make(f)
		return nil
	})
	return p, err
}

func unavailableMemo() *memo.Values {
	panic(&handler.UnavailableError{What: "a memo"}) //nolint:forbidigo // nothing else can end a filter, and its caller recovers
}

// silent returns a reporter of nothing.
func silent() report.Reporter {
	return report.Reporter{Log: logr.Discard(), Object: &reportonce.Set{}, Shared: &reportonce.SharedSet{}}
}

// bodyOf returns an object as the cache has it.
func bodyOf(raw map[string]any) (*object.Body, error) {
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	snapshot, err := object.ParseSnapshot(text)
	if err != nil {
		return nil, err
	}
	return snapshot.Body(), nil
}

// isOfFilters reports whether a filter has panicked.
func isOfFilters(err error) bool {
	var panicked *handler.PanicError
	return errors.As(err, &panicked)
}

// undecidable returns the declarations whose filters cannot be evaluated here.
func (t target) undecidable(ctx context.Context) map[*handler.Declaration]error {
	found := map[*handler.Declaration]error{}
	for _, d := range t.handlers.Declared {
		alone := t
		alone.handlers = t.handlers.Only(func(other *handler.Declaration) bool { return other == d })
		if _, err := alone.plan(ctx, true); isOfFilters(err) {
			found[d] = err
		}
	}
	return found
}

// fill fills in what is about the object.
func (n *Object) fill(p *plan.Plan) {
	n.Reason = p.Reason
	n.InScope = p.InScope
	n.HasFinalizer = p.HasFinalizer
	n.NeedsFinalizer = p.NeedsFinalizer
	if p.Cycle == nil {
		return
	}
	n.Old = p.Old
	n.New = p.New
	n.Diff = p.Diff
	n.WasHandled = p.Cycle.Base != nil
	n.Open = p.Cycle.Progress.Stored().HasOpen(p.Reason)
	if p.Reason == cause.Delete {
		n.HeldByFailure = p.Cycle.HeldByFailure()
	}
	if p.Requests != nil {
		n.Requests = p.Requests.Notes
	}
}

// failures returns the messages of the handlers that have failed permanently, if the conditions of
// the object keep them. Forgotten are those of handlers that are not declared: they no longer count
// after the next pass over the object.
func (t target) failures(p *plan.Plan) (failed, forgotten map[string]string) {
	if !t.handlers.HasConditions {
		return nil, nil
	}
	failed = map[string]string{}
	forgotten = map[string]string{}
	held := !p.Deleting && p.IsResponsible(t.handlers)
	for id, message := range plan.FailuresIn(t.body.Raw()) {
		switch {
		case call.ParentOf(id, t.handlers.IDs) != "":
			failed[id] = message
		case held:
			forgotten[id] = message
		}
	}
	return failed, forgotten
}

// readRecords reads what is stored about handlers.
func (t target) readRecords(ctx context.Context, p *plan.Plan, n *Object) {
	ids := plan.IDsOf(t.handlers.Triggered)
	if p.Cycle != nil {
		ids = append(p.Cycle.Progress.IDs(), ids...)
		n.Undeclared = t.records.Unknown(t.body, ids)
		n.Remarks = map[string]string{}
		for _, name := range n.Undeclared {
			n.Remarks[name] = undeclared.Remark(name, t.handlers.IDs)
		}
		_, err := t.records.Storages.DiffBase.Fetch(ctx, t.body)
		n.addError(err)
	}
	for _, id := range ids {
		stored, err := t.records.Storages.Progress.Fetch(ctx, t.body, id)
		n.addError(err)
		if stored != nil {
			n.Records[id] = *stored
		}
	}
}

func (n *Object) addError(err error) {
	if err != nil && !slices.ContainsFunc(n.Unreadable, func(known error) bool { return known.Error() == err.Error() }) {
		n.Unreadable = append(n.Unreadable, err)
	}
}

// ends returns the states at which handlers have ended in the open cycle, if the object has changed since.
func (t target) ends(ctx context.Context, p *plan.Plan, n *Object) map[string]object.Essence {
	if p.Cycle == nil || !n.Open {
		return nil
	}
	ends, err := t.records.EndedAt(ctx, p.Cycle, t.body, silent())
	n.addError(err)
	return ends
}

// compareEnd fills in what has changed since the handler has ended.
func (t target) compareEnd(one *Handler, now *plan.Plan, end object.Essence) {
	if end == nil || !one.Kind.IsChange() {
		return
	}
	one.Later = diff.Compute(end, now.New, diff.Full)
	one.Again = plan.IsDue(t.handlers.Changing, now.CallContext, one.ID, end, now.New)
}

// judge fills in what is about one handler.
func (t target) judge(one *Handler, now, resumed *plan.Plan) {
	of := &now.Cause
	if !one.Kind.IsChange() {
		of = &handler.Cause{CallContext: now.CallContext, New: t.body.Raw()}
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
		at := time.Now()
		one.Verdict = now.Verdict(one.Declaration, t.requests.Suspension(t.body, at), at)
		one.Selected = slices.Contains(now.Handlers, one.Declaration)
		one.Skips = one.Selected && now.WillSkip(one.ID)
		one.Resumes = slices.Contains(resumed.Handlers, one.Declaration) && !one.Selected
		if one.Revision != "" {
			one.RevisionMark, one.RevisionFailed, _ = revision.Read(t.body, t.revisions.Annotation).Of(one.ID)
		}
	default:
		if err := one.Declaration.Misfit(of); err != nil {
			one.Misfit = err
		}
	}
}

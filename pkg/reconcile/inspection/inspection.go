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
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/internal/reportonce"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
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

// Inspector makes the plans of objects. Memos and the client do not exist; handlers whose filters need them are
// undecidable. So are those whose filters read indices that nothing fills: see WithoutIndices.
//
// It is safe for concurrent use, also next to a running operator with the same handlers.
type Inspector struct {
	handlers  registry.Handlers
	finalizer string
	records   record.Keeper
	requests  *requests.Reader // nil: requests are ignored
	revisions *revision.Reviser

	mu     sync.Mutex
	sorted map[string]*plan.Handlers // by resource
}

// New returns an Inspector for the handlers of an operator.
func New(handlers registry.Handlers, s settings.Settings) *Inspector {
	s = s.WithDefaults()
	prefix := storage.RequestPrefix(s.Persistence.DiffBase, s.Persistence.Progress)
	i := &Inspector{
		handlers: handlers.Watching(), finalizer: s.Persistence.Finalizer, records: record.Keeper{Storages: s.Persistence},
		revisions: &revision.Reviser{Annotation: prefix + "/" + revision.Name}, sorted: map[string]*plan.Handlers{},
	}
	if !s.Requests.Disabled {
		i.requests = requests.NewReader(prefix)
	}
	return i
}

// WithoutIndices says that no operator with the handlers runs in this process, so that their indices are empty and must
// not be read.
func WithoutIndices(handlers registry.Handlers) {
	for _, d := range handlers.OfKind(handler.OnIndex) {
		index.SetAvailable(d.Table, false)
	}
}

// Object describes what a pass over an object would find. Slices and maps can be nil.
type Object struct {
	// Body is the object.
	Body *object.Body
	// Reason names what has happened to the object, for an operator that knows it already.
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

// Handler describes what a pass would find about one declaration.
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
	// NextRun is when a timer with a schedule is called next; zero if ScheduleErr says why that is unknown.
	NextRun     time.Time
	ScheduleErr error
	// LastRun is the last run that has ended, or nil.
	LastRun *storage.Record
}

// Inspect returns what passes over an object of a resource would find. It returns an error if
// that cannot be known at all.
func (i *Inspector) Inspect(ctx context.Context, found discovery.SelectedResource, raw map[string]any) (*Object, error) {
	of, err := i.target(found, raw)
	if err != nil {
		return nil, err
	}
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

	n := &Object{
		Body: of.body, Reason: now.Reason, InScope: now.InScope, HasFinalizer: now.HasFinalizer, NeedsFinalizer: now.NeedsFinalizer,
		Suspension: i.requests.Suspension(of.body, time.Now()), Records: map[string]storage.Record{},
	}
	n.Failed, n.Forgotten = of.failures(now)
	ids := plan.IDsOf(of.handlers.Triggered)
	var ends map[string]object.Essence // at which handlers have ended in the open cycle, if the object has changed since
	if now.Cycle != nil {
		n.Old = now.Old
		n.New = now.New
		n.Diff = now.Diff
		n.WasHandled = now.Cycle.Base != nil
		n.Open = now.Cycle.Progress.Stored().HasOpen(now.Reason)
		if now.Reason == cause.Delete {
			n.HeldByFailure = now.Cycle.HeldByFailure()
		}
		if now.Requests != nil {
			n.Requests = now.Requests.Notes
		}
		ids = append(now.Cycle.Progress.IDs(), ids...)
		n.Undeclared, err = i.records.Unknown(ctx, of.body, append(slices.Clone(ids), plan.RunsOf(of.handlers.Background)...))
		if err != nil {
			return nil, err
		}
		n.Remarks = map[string]string{}
		for _, name := range n.Undeclared {
			n.Remarks[name] = undeclared.Remark(name, of.handlers.IDs)
		}
		_, err := i.records.Storages.DiffBase.Fetch(ctx, of.body)
		n.addUnreadable(err)
	}
	for _, id := range ids {
		stored, err := i.records.Storages.Progress.Fetch(ctx, of.body, id)
		n.addUnreadable(err)
		if stored != nil {
			n.Records[id] = *stored
		}
	}
	if n.Open && now.Cycle != nil {
		ends, err = i.records.EndedAt(ctx, now.Cycle, of.body, silent())
		n.addUnreadable(err)
	}
	for _, d := range of.handlers.Declared {
		one := Handler{Declaration: d, Undecidable: undecidable[d]}
		if one.Undecidable == nil {
			err := handler.WithRecover(func() error {
				one = of.judge(ctx, d, now, resumed, ends[d.ID])
				return nil
			})
			one.Undecidable = err
		}
		if d.Schedule != nil {
			one.LastRun, err = i.records.Storages.Progress.Fetch(ctx, of.body, record.RunOf(d.ID))
			n.addUnreadable(err)
		}
		n.Handlers = append(n.Handlers, one)
	}
	return n, nil
}

// addUnreadable adds an error of a stored value, once.
func (n *Object) addUnreadable(err error) {
	if err != nil && !slices.ContainsFunc(n.Unreadable, func(known error) bool { return known.Error() == err.Error() }) {
		n.Unreadable = append(n.Unreadable, err)
	}
}

// Note is the outcome of a request.
type Note = requests.Note

// Rollout counts the objects of one rollout, as they are stored.
type Rollout = revision.Tally

// Count adds an object of a resource to a rollout.
func (i *Inspector) Count(ctx context.Context, found discovery.SelectedResource, raw map[string]any, in *Rollout) error {
	of, err := i.target(found, raw)
	if err != nil {
		return err
	}
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

// HasFields reports whether a handler of a resource is for a field.
func (i *Inspector) HasFields(found discovery.SelectedResource) bool {
	return plan.HasFields(i.handlersOf(found).Declared)
}

// UnknownFields returns an error for each handler of a field that the objects of a resource do not have, as an operator
// logs it. The definition is nil if there is none, or if it cannot be read.
func (i *Inspector) UnknownFields(found discovery.SelectedResource, definition map[string]any, scheme *runtime.Scheme) []error {
	return plan.UnknownFields(i.handlersOf(found).Declared, found.Resource, definition, scheme)
}

// handlersOf returns the handlers that passes over the objects of a resource call.
func (i *Inspector) handlersOf(found discovery.SelectedResource) *plan.Handlers {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.sorted[found.String()]
	if known == nil {
		known = plan.Sort(i.handlers.Where(func(d *handler.Declaration) bool { return slices.Contains(found.Selectors, d.Selector) }))
		i.sorted[found.String()] = known
	}
	return known
}

// target is an object with the handlers of its resource.
type target struct {
	inspector *Inspector
	resource  selector.Resource
	handlers  *plan.Handlers
	body      *object.Body
}

// target returns an object as the cache has it, with the handlers of its resource.
func (i *Inspector) target(found discovery.SelectedResource, raw map[string]any) (target, error) {
	text, err := json.Marshal(raw)
	if err != nil {
		return target{}, err
	}
	snapshot, err := object.ParseSnapshot(text)
	if err != nil {
		return target{}, err
	}
	return target{i, found.Resource, i.handlersOf(found), snapshot.Body()}, nil
}

func (t target) key() object.Key {
	return object.Key{Resource: t.resource.String(), NamespacedName: types.NamespacedName{Namespace: t.body.Namespace(), Name: t.body.Name()}}
}

// plan makes the plan of a pass. Initial is for an operator that has just started.
func (t target) plan(ctx context.Context, initial bool) (p *plan.Plan, err error) {
	f := plan.Facts{
		Key: t.key(), Handlers: t.handlers, Memory: plan.Memory{Initial: initial}, Requests: t.inspector.requests, Revisions: t.inspector.revisions,
		HasFinalizer: slices.Contains(t.body.Finalizers(), t.inspector.finalizer),
		Arguments:    handler.CallContext{Body: t.body, Resource: &t.resource, Logger: logr.Discard(), Memo: unavailableMemo},
	}
	err = handler.WithRecover(func() (err error) {
		if len(t.handlers.Changing) > 0 {
			f.Stored, err = t.inspector.records.Read(ctx, t.body, t.handlers.IDs, t.handlers.Fields, silent())
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
		case call.TopOf(id, t.handlers.IDs) != "":
			failed[id] = message
		case held:
			forgotten[id] = message
		}
	}
	return failed, forgotten
}

// nextRun returns when a timer with a schedule is called next.
func (t target) nextRun(ctx context.Context, d *handler.Declaration, now *plan.Plan) (time.Time, error) {
	last, err := t.inspector.records.LastRun(ctx, t.body, d.ID, silent())
	if err != nil {
		return time.Time{}, err
	}
	found, err := d.Schedule.Read(handler.NewCall(d, now.CallContext, handler.Attempt{}))
	if err != nil {
		return time.Time{}, err
	}
	at := time.Now()
	if last.Schedule != "" && last.Schedule != found.String() { // the runs of another schedule count from now
		return d.Schedule.NextRun(found, at, at)
	}
	return d.Schedule.NextRun(found, last.Started, at)
}

// judge returns what a pass would find about one handler. End is the state at which it has ended in
// the open cycle, if the object has changed since.
func (t target) judge(ctx context.Context, d *handler.Declaration, now, resumed *plan.Plan, end object.Essence) Handler {
	one := Handler{Declaration: d}
	of := &now.Cause
	if !d.Kind.IsChange() {
		of = &handler.Cause{CallContext: now.CallContext, New: t.body.Raw()}
	}
	one.OutOfScope = of.OutOfScope(d)
	switch {
	case d.Kind.IsBackground():
		one.Selected = slices.Contains(now.Background, d)
		for _, m := range now.Misfits {
			if m.Handler == d {
				one.Misfit = m.Err
			}
		}
		if d.Schedule != nil {
			one.NextRun, one.ScheduleErr = t.nextRun(ctx, d, now)
		}
	case d.Kind.IsChange():
		at := time.Now()
		one.Verdict = now.Verdict(d, t.inspector.requests.Suspension(t.body, at), at)
		one.Selected = slices.Contains(now.Handlers, d)
		one.Skips = one.Selected && now.WillSkip(d.ID)
		one.Resumes = slices.Contains(resumed.Handlers, d) && !one.Selected
		if d.Revision != "" {
			one.RevisionMark, one.RevisionFailed, _ = revision.Read(t.body, t.inspector.revisions.Annotation).Of(d.ID)
		}
		if end != nil {
			one.Later = diff.Compute(end, now.New, diff.Full)
			one.Again = plan.IsSelected(t.handlers.Changing, now.CallContext, d.ID, end, now.New)
		}
	default:
		if err := d.Misfit(of); err != nil { // a nil pointer would not be a nil error
			one.Misfit = err
		}
	}
	return one
}

package reconcile

import (
	"context"
	"slices"
	"time"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// eventHandlers calls the event handlers of an object.
type eventHandlers struct {
	target
	current *object.Snapshot // the latest version of the watch; nil if the object is gone
}

// areEventsPending reports whether event handlers must be called before anything else.
func (t *target) areEventsPending() bool {
	return len(t.resource.events) > 0 && t.engine.backlog.Has(t.key)
}

// takeSlot takes the slot for the handlers of all pending events, which run one after
// another. It returns nil if they must wait.
func (e eventHandlers) takeSlot() *call.Running {
	return e.engine.slots.Take(call.Claim{Key: e.key})
}

// handleWith is handle with a slot, without a permit.
func (e eventHandlers) handleWith(ctx context.Context, slot *call.Running) (err error) {
	defer recovered(&err)
	defer e.engine.slots.Return(slot)
	e.handle(ctx)
	return nil
}

// handle calls the handlers for all pending events in order. The next write to this object
// writes their edits.
func (e eventHandlers) handle(ctx context.Context) {
	current := e.current
	for _, event := range e.engine.backlog.Take(e.key) {
		e.observe(event)
		edits := e.call(ctx, event)
		if event.Type == apiwatch.Deleted {
			e.object.dropMemos(event.Snapshot.GetUID())
		}
		if current != nil && event.Type != apiwatch.Deleted && event.Snapshot.GetUID() == current.GetUID() {
			e.object.writes.Add(edits...)
		}
	}
}

// observe records which object an event belongs to. A late event of an earlier object must not
// discard the current one.
func (e eventHandlers) observe(event object.WatchEvent) {
	s := e.object
	uid := event.Snapshot.GetUID()
	current := e.current
	if current == nil || s.writes.UID() != current.GetUID() {
		s.resetFor(uid)
	}
	if s.writes.UID() == uid {
		s.deleteEventHandled = event.Type == apiwatch.Deleted
	}
}

// isDeletePending reports whether the object is gone but its event handlers still have to
// be called: the watch will show the deletion, so the state is kept.
func (e eventHandlers) isDeletePending() bool {
	return e.resource.IsWatched(e.key.Namespace) && len(e.resource.events) > 0 && e.object.writes.UID() != "" && !e.object.deleteEventHandled
}

// call calls the handlers of one event.
func (e eventHandlers) call(ctx context.Context, event object.WatchEvent) []call.Edit {
	body := event.Snapshot.Body()
	e.report.Log = e.engine.loggerOf(e.key, func() *object.Body { return body }) // the object may be gone
	if e.suspension(body).Active {
		return nil
	}
	observed := &handler.Cause{CallContext: e.callArguments(body), New: body.Raw(), EventType: event.Type}
	var edits []call.Edit
	var called registry.Handlers
	for _, d := range e.resource.events {
		if slices.ContainsFunc(called, d.IsSame) {
			continue // another declaration of the same handler
		}
		selected := false
		err := handler.WithRecover(func() error { selected = d.InScope(observed); return nil })
		if !selected && err == nil {
			continue
		}
		called = append(called, d)
		if edit := e.callOne(ctx, d, event, body, err); edit.Result != nil || !edit.Patch.Empty() {
			edits = append(edits, edit)
		}
	}
	return edits
}

// callOne calls one handler, unless its filter has failed. It only logs errors.
func (e eventHandlers) callOne(ctx context.Context, d *handler.Declaration, event object.WatchEvent, body *object.Body, failure error) call.Edit {
	ctx, common := e.prepareCall(ctx, d, body)
	common.Patch = &patch.Patch{}
	arguments := handler.NewCall(d, common, handler.Attempt{})
	arguments.Event = event.Type
	var result any
	began := time.Now()
	if failure == nil {
		_, failure = d.CallIsolated(ctx, arguments)
	}
	if failure == nil {
		result, failure = call.NormalizeResult(arguments.Result())
	}
	misfit := handler.AsMisfit(failure)
	e.engine.objects.recordMisfit(e.key, d, misfit)
	if misfit != nil {
		return call.Edit{ID: d.ID, Patch: &patch.Patch{}}
	}
	e.engine.measure(e.resource, d, call.Outcome{Called: true, Final: true, Ignored: failure, Took: time.Since(began)})
	if failure != nil {
		e.report.Log.Error(failure, "The event handler failed; this is ignored.", append(handler.StackValues(failure), "handler", d.ID)...)
	}
	return call.Edit{ID: d.ID, Result: result, Patch: common.Patch}
}

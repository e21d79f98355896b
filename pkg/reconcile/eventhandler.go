package reconcile

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// handleEvents calls the event handlers for all pending events in order. The next write to this object
// writes their edits. The current version is the latest one of the watch; nil if the object is gone.
// An error means that some events wait for the next pass.
func (p *pass) handleEvents(ctx context.Context, current *object.Snapshot) error {
	events := p.engine.backlog.Take(p.key)
	for i, event := range events {
		// A late event of an earlier object must not discard the current one.
		uid := event.Snapshot.GetUID()
		if current == nil || p.object.writes.UID() != current.GetUID() {
			p.resetFor(uid)
		}
		if event.Type == object.Vanished {
			isDeleted, err := p.isDeleted(ctx, uid, current, events[i+1:])
			if err != nil {
				p.engine.backlog.PutBack(p.key, events[i:])
				return err
			}
			if !isDeleted {
				continue
			}
			event.Type = apiwatch.Deleted
		}
		if p.object.writes.UID() == uid {
			p.object.deleteEventHandled = event.Type == apiwatch.Deleted
		}
		edits := p.callEventHandlers(ctx, event)
		if event.Type == apiwatch.Deleted {
			p.object.dropMemos(uid)
		}
		if current != nil && event.Type != apiwatch.Deleted && uid == current.GetUID() {
			p.object.writes.Add(edits...)
		}
	}
	return nil
}

// isDeleted reports whether an object that has vanished from its watch was deleted, as its event handlers understand
// it. It was not if the watch shows it later, in the current version or in another event.
func (p *pass) isDeleted(ctx context.Context, uid types.UID, current *object.Snapshot, later []object.WatchEvent) (bool, error) {
	isBack := current != nil && current.GetUID() == uid || slices.ContainsFunc(later, func(event object.WatchEvent) bool { return event.Snapshot.GetUID() == uid })
	if isBack {
		return false, nil
	}
	exists, err := p.findAgain(ctx, uid)
	return !exists, err
}

// callEventHandlers calls the handlers of one event. It logs about the version of the event, so it has its
// own copy of the target.
func (t target) callEventHandlers(ctx context.Context, event object.WatchEvent) []call.Edit {
	body := event.Snapshot.Body()
	t.report.Log = t.engine.loggerOf(t.key, func() *object.Body { return body }) // the object may be gone
	if t.suspension(body).Active {
		return nil
	}
	observed := &handler.Cause{CallContext: t.callArguments(body), New: body.Raw(), EventType: event.Type}
	var edits []call.Edit
	var called registry.Handlers
	for _, d := range t.resource.events {
		if slices.ContainsFunc(called, d.IsSame) {
			continue // another declaration of the same handler
		}
		selected := false
		err := handler.WithRecover(func() error { selected = d.InScope(observed); return nil })
		if !selected && err == nil {
			continue
		}
		called = append(called, d)
		if edit := t.callEventHandler(ctx, d, event, body, err); edit.Result != nil || !edit.Patch.Empty() {
			edits = append(edits, edit)
		}
	}
	return edits
}

// callEventHandler calls one handler, unless its filter has failed. It only logs errors.
func (t *target) callEventHandler(ctx context.Context, d *handler.Declaration, event object.WatchEvent, body *object.Body, failure error) call.Edit {
	ctx, common := t.prepareCall(ctx, d, body)
	var span call.EndSpan
	if t.engine.spans != nil && failure == nil {
		ctx, span = t.engine.spans.single(ctx, d, t.key, body, 0, time.Time{})
	}
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
	outcome := call.Outcome{Called: true, Final: true, Ignored: failure, Took: time.Since(began)}
	misfit := handler.AsMisfit(failure)
	span.End(outcome, misfit == nil)
	t.engine.objects.recordMisfit(t.key, d, misfit)
	if misfit != nil {
		return call.Edit{ID: d.ID, Patch: &patch.Patch{}}
	}
	t.engine.measure(t.resource, d, outcome)
	if failure != nil {
		t.report.Log.Error(failure, "The event handler failed; this is ignored.", append(handler.StackValues(failure), "handler", d.ID)...)
	}
	return call.Edit{ID: d.ID, Result: result, Patch: common.Patch}
}

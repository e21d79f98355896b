package reconcile

import (
	"context"
	"time"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// handleEvents calls the event handlers for all events that have come, in order. Their
// edits are written by the next write to this object.
func (p *pass) handleEvents(ctx context.Context, current *object.Snapshot) {
	if len(p.resource.events) == 0 {
		return
	}
	for _, event := range p.engine.backlog.Take(p.key) {
		p.noteEvent(event, current)
		edits := p.callEventHandlers(ctx, event)
		if event.Type == apiwatch.Deleted {
			p.object.dropMemos(event.Snapshot.GetUID())
		}
		if current != nil && event.Type != apiwatch.Deleted && event.Snapshot.GetUID() == current.GetUID() {
			p.object.writes.Add(edits...)
		}
	}
}

// noteEvent notes which object an event is of. A late one of an earlier object is no
// reason to forget the current one.
func (p *pass) noteEvent(event object.WatchEvent, current *object.Snapshot) {
	s, uid := p.object, event.Snapshot.GetUID()
	if current == nil || s.writes.UID() != current.GetUID() {
		s.resetFor(uid)
	}
	if s.writes.UID() == uid {
		s.deleteEventHandled = event.Type == apiwatch.Deleted
	}
}

// isDeleteEventPending reports whether the object is gone, but its event handlers have
// yet to be called for that: the watch is about to show it, and the state is kept.
func (p *pass) isDeleteEventPending() bool {
	return p.resource.IsWatched(p.key.Namespace) && len(p.resource.events) > 0 && p.object.writes.UID() != "" && !p.object.deleteEventHandled
}

// callEventHandlers calls the handlers of one event.
func (p *pass) callEventHandlers(ctx context.Context, event object.WatchEvent) []execution.Edit {
	body := event.Snapshot.Body()
	observed := &handler.Cause{CallContext: p.callArguments(body), New: body.Raw()}
	var edits []execution.Edit
	for _, d := range p.resource.events {
		selected := false
		err := handler.WithRecover(func() error { selected = d.InScope(observed); return nil })
		if !selected && err == nil {
			continue
		}
		if edit := p.callEventHandler(ctx, d, event, body, err); edit.Result != nil || !edit.Patch.Empty() {
			edits = append(edits, edit)
		}
	}
	return edits
}

// callEventHandler calls one handler, unless its filter has failed. Errors are logged,
// no more.
func (p *pass) callEventHandler(ctx context.Context, d *handler.Declaration, event object.WatchEvent, body *object.Body, failure error) execution.Edit {
	ctx, call := p.prepareCall(ctx, d, body)
	call.Patch = &patch.Patch{}
	arguments := handler.NewEvent(call, d.Param, event.Type)
	var result any
	began := time.Now()
	if failure == nil {
		failure = d.CallEvent(ctx, arguments)
	}
	if failure == nil {
		result, failure = execution.NormalizeResult(arguments.Result())
	}
	p.engine.measure(p.resource, d, execution.Outcome{Called: true, Final: true, Ignored: failure, Took: time.Since(began)})
	if failure != nil {
		p.report.Log.Error(failure, "The event handler failed; this is ignored.", append(handler.StackValues(failure), "handler", d.ID)...)
	}
	return execution.Edit{ID: d.ID, Result: result, Patch: call.Patch}
}

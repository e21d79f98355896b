package reconcile

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// deliver calls the event handlers for all events that have come, in order.
// What they want to be written goes with the next write of this object.
func (p *pass) deliver(ctx context.Context, current *object.Snapshot) {
	if len(p.events) == 0 {
		return
	}
	for _, event := range p.lines.take(p.key) {
		p.meet(event, current)
		contributions := p.callEvent(ctx, event)
		if event.Type == watch.Deleted {
			p.memory.outlive(event.Snapshot.GetUID())
		}
		if current != nil && event.Type != watch.Deleted && event.Snapshot.GetUID() == current.GetUID() {
			p.memory.unsent = append(p.memory.unsent, contributions...)
		}
	}
}

// meet notes which object an event is of. A late one of an earlier object is no
// reason to forget the present one.
func (p *pass) meet(event object.WatchEvent, current *object.Snapshot) {
	m, uid := p.memory, event.Snapshot.GetUID()
	if current == nil || m.uid != current.GetUID() {
		m.renew(uid)
	}
	if m.uid == uid {
		m.ended = event.Type == watch.Deleted
	}
}

// untold tells whether the object is gone, but its end is yet to come to the event
// handlers: the watch is about to tell, and the memory is kept for them.
func (p *pass) untold() bool {
	watched := p.streams.of(p.key.Namespace) != nil
	return watched && len(p.events) > 0 && p.memory.uid != "" && !p.memory.ended
}

// callEvent calls the handlers of one event.
func (p *pass) callEvent(ctx context.Context, event object.WatchEvent) []execution.Edit {
	visit := *p
	visit.body = event.Snapshot.Body()
	occasion := &handler.Cause{CallContext: visit.subject(), New: visit.body.Raw()}
	var contributions []execution.Edit
	for _, d := range p.events {
		wanted := false
		err := handler.WithRecover(func() error { wanted = d.InScope(occasion); return nil })
		if !wanted && err == nil {
			continue
		}
		if c := visit.callEventHandler(ctx, d, event, err); c.Result != nil || !c.Patch.Empty() {
			contributions = append(contributions, c)
		}
	}
	return contributions
}

// callEventHandler calls one handler, unless its filter has failed. Errors are
// logged, no more.
func (p *pass) callEventHandler(ctx context.Context, d *handler.Declaration, event object.WatchEvent, failure error) execution.Edit {
	ctx, subject := p.prepare(ctx, d)
	subject.Patch = &patch.Patch{}
	arguments := handler.NewEvent(subject, d.Param, event.Type)
	var result any
	began := time.Now()
	if failure == nil {
		failure = d.CallEvent(ctx, arguments)
	}
	if failure == nil {
		result, failure = execution.NormalizeResult(arguments.Result())
	}
	p.measure(p.served, d, execution.Outcome{Called: true, Final: true, Ignored: failure, Took: time.Since(began)})
	if failure != nil {
		p.log.Error(failure, "The event handler failed; this is ignored.", append(handler.StackValues(failure), "handler", d.ID)...)
	}
	return execution.Edit{ID: d.ID, Result: result, Patch: subject.Patch}
}

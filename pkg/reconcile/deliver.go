package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/kopf/handler"
	"github.com/kopf-go/kopf/pkg/kopf/object"
	"github.com/kopf-go/kopf/pkg/kopf/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// deliver calls the event handlers for all events that have come, in order.
// What they want to be written goes with the next write of this object.
func (p *pass) deliver(ctx context.Context, current *object.Snapshot) {
	if len(p.events) == 0 {
		return
	}
	for _, event := range p.lines.take(p.key) {
		p.memory.renew(event.snapshot.GetUID())
		contributions := p.callEvent(ctx, event)
		if current != nil && event.kind != watch.Deleted && event.snapshot.GetUID() == current.GetUID() {
			p.memory.unsent = append(p.memory.unsent, contributions...)
		}
	}
}

// callEvent calls the handlers of one event. Their errors are logged, no more.
func (p *pass) callEvent(ctx context.Context, event occurrence) []execution.Contribution {
	visit := *p
	visit.body = event.snapshot.Body()
	occasion := &handler.Occasion{Subject: visit.subject(), New: visit.body.Raw()}
	var contributions []execution.Contribution
	for _, d := range p.events {
		callCtx, subject := visit.prepare(ctx, d)
		subject.Patch = &patch.Patch{}
		result, err := call(callCtx, d, occasion, handler.NewEvent(subject, d.Param, event.kind))
		if err != nil {
			subject.Logger.Error(err, "The event handler failed; this is ignored.", stackOf(err)...)
		}
		if result != nil || !subject.Patch.Empty() {
			contributions = append(contributions, execution.Contribution{ID: d.ID, Result: result, Patch: subject.Patch})
		}
	}
	return contributions
}

// call calls one event handler, if its filters agree. It has a result only if
// neither they nor it have failed.
func call(ctx context.Context, d *handler.Declaration, o *handler.Occasion, arguments *handler.Event) (any, error) {
	err := handler.Guarded(func() error {
		if !d.InScope(o) {
			return nil
		}
		return d.CallEvent(ctx, arguments)
	})
	if err != nil {
		return nil, err
	}
	return execution.Result(arguments.Result())
}

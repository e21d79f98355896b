package reconcile

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/converge"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/capacity"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
)

// gate limits the calls of a pass. While the code of a handler runs, it gives back the permit
// of the pass, and the memory of the essences.
type gate struct {
	pass  *pass
	cycle *cycle
}

var _ execution.Gate = gate{}

func (g gate) call(d *handler.Declaration) capacity.Call {
	c := capacity.Call{Key: g.pass.key, ID: d.ID, Limit: d.Limit, Nested: d.Kind == handler.Subhandler}
	if d.Limit > 0 {
		c.Pool = handler.LimitGroup(d)
	}
	return c
}

// isWithin reports whether the call is a part of another one: it has the slot of its parent.
func isWithin(c capacity.Call) bool { return c.Nested && c.Limit == 0 }

func (g gate) CanCall(d *handler.Declaration) bool {
	c := g.call(d)
	return isWithin(c) || g.pass.engine.slots.CanTake(c)
}

func (g gate) Begin(d *handler.Declaration) (end func(), ok bool) {
	c := g.call(d)
	if isWithin(c) {
		return func() {}, true
	}
	slot := g.pass.engine.slots.Take(c)
	if slot == nil {
		return nil, false
	}
	g.pass.slots = append(g.pass.slots, slot)
	return func() { g.end(slot) }, true
}

// end returns a slot.
func (g gate) end(slot *capacity.Running) {
	g.pass.slots = slices.DeleteFunc(g.pass.slots, func(other *capacity.Running) bool { return other == slot })
	g.pass.engine.slots.Return(slot)
}

func (g gate) Waits(id string) bool { return g.pass.engine.slots.Waits(g.pass.key, id) }

func (g gate) CanGo(id string) bool { return g.pass.engine.slots.HasReserved(g.pass.key, id) }

func (g gate) Leave() {
	g.cycle.releaseEssences()
	g.pass.engine.permits.Release()
}

func (g gate) Enter() {
	g.pass.engine.permits.Continue(g.pass.key.Resource)
	g.cycle.restoreEssences()
}

// returnsChildren reports whether a handler returns the children of its object.
func returnsChildren(d *handler.Declaration) bool { return d.Ensures != nil }

// parent lets the handlers of a pass apply the children of its object.
type parent struct {
	pass  *pass
	cycle *cycle
}

var _ handler.Converger = parent{}

// Converge makes the children what the handler wants.
func (p parent) Converge(ctx context.Context, d *handler.Declaration, wanted []client.Object) error {
	return p.pass.engine.converger.Converge(ctx, p.call(ctx, d), wanted)
}

// Release deletes the children that the garbage collector does not reach.
func (p parent) Release(ctx context.Context, d *handler.Declaration) error {
	return p.pass.engine.converger.Release(ctx, p.call(ctx, d))
}

func (p parent) call(ctx context.Context, d *handler.Declaration) converge.Call {
	body, declared := p.pass.session.Body(), p.pass.resource.declared
	return converge.Call{
		Owner: converge.Owner{
			Operator: p.pass.engine.Settings.Name, Handler: d.ID,
			Parent: converge.Parent{Key: p.pass.key, UID: body.UID(), GVK: p.pass.resource.GVK()},
		},
		Options: d.Ensures, Places: convergence.ReadPlaces(body), Announce: p.storePlaces, Log: log.FromContext(ctx),
		IsDeclared: func(id string) bool {
			return slices.ContainsFunc(declared, func(other *handler.Declaration) bool { return returnsChildren(other) && other.ID == id })
		},
	}
}

// storePlaces writes the places of the children to the object, in the middle of a call. If others
// have changed the object, the call ends, and another pass repeats it.
func (p parent) storePlaces(_ context.Context, places convergence.Places) error {
	waiting := gate(p)
	waiting.Enter()
	defer waiting.Leave()
	outcome, err := p.pass.session.Write(p.pass.workers.writes, write.Update{Decision: write.Decision{
		AddFinalizer: !places.AreReachable(p.pass.key.Namespace),
		Annotations:  map[string]string{convergence.PlacesAnnotation: places.Text()},
	}})
	switch {
	case err != nil:
		return &execution.Interruption{Err: err}
	case outcome.Gone || outcome.ChangedByOthers || p.pass.workers.isStopping():
		return &execution.Interruption{Err: errInterrupted}
	default:
		return nil
	}
}

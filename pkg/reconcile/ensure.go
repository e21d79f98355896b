package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/converge"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
)

// addConverger adds the converger if there are handlers that return children.
func (e *Engine) addConverger() {
	declared := map[string]bool{}
	for _, d := range e.Handlers {
		if d.Ensures != nil {
			declared[d.Top().ID] = true
		}
	}
	if len(declared) == 0 {
		return
	}
	types := scheme.Scheme
	if e.Client != nil {
		types = e.Client.Scheme()
	}
	e.converger = converge.New(converge.Config{
		Manager: e.Settings.Name, FormerManagers: e.Settings.FormerNames, Scheme: types,
		Delays: e.Settings.Queueing.ContentionDelays, RequestTimeout: e.Settings.Networking.RequestTimeout,
		Resources: e.watcher.Kinds, Watches: e.watcher, Metrics: e.Metrics, Tracer: e.Tracer,
		Seen: func(parent, id string) {
			if kind, _, found := strings.Cut(parent, " "); found && !declared[id] {
				e.undeclared.AddChild(kind, id)
			}
		},
	})
}

// parent lets the handlers of a pass apply the children of its object.
type parent struct {
	pass  *pass
	cycle *cycle
}

var _ handler.Converger = parent{}

// Converge makes the children what the handler wants.
func (p parent) Converge(ctx context.Context, d *handler.Declaration, call *handler.Call, wanted []client.Object) error {
	c := p.call(ctx, d)
	c.Drift = p.driftHandlers(d, call)
	return p.pass.engine.converger.Converge(ctx, c, wanted)
}

// decideDrift decides about what others have changed in a child.
type decideDrift = func(ctx context.Context, r selector.Resource, drift convergence.Drift) (convergence.Resolution, error)

// driftHandlers returns the function that calls the handlers of drift for the children of a handler,
// or nil if there are none for the object.
func (p parent) driftHandlers(children *handler.Declaration, call *handler.Call) decideDrift {
	if len(p.pass.resource.drifting) == 0 {
		return nil
	}
	id := children.Top().ID
	cause := &handler.Cause{CallContext: p.pass.callArguments(p.pass.session.Body()), New: p.pass.session.Body().Raw()}
	matching := p.pass.resource.drifting.Where(func(d *handler.Declaration) bool {
		return (len(d.EnsuredBy) == 0 || slices.Contains(d.EnsuredBy, id)) && d.InScope(cause)
	})
	if len(matching) == 0 {
		return nil
	}
	return func(ctx context.Context, r selector.Resource, drift convergence.Drift) (resolution convergence.Resolution, err error) {
		for i, d := range matching {
			if slices.ContainsFunc(matching[:i], d.IsSame) {
				continue
			}
			one, err := p.callDriftHandler(ctx, handler.AboutChild(d, r, drift.Child, p.pass.key.Namespace), call, id, drift)
			if err != nil {
				return resolution, fmt.Errorf("handler %s: %w", d.ID, err)
			}
			resolution = resolution.And(one)
		}
		return resolution, nil
	}
}

// callDriftHandler calls one handler of drift.
func (p parent) callDriftHandler(ctx context.Context, d *handler.Declaration, change *handler.Call, id string, drift convergence.Drift) (convergence.Resolution, error) {
	ctx, arguments := p.pass.prepareCall(ctx, d, p.pass.session.Body())
	var span call.EndSpan
	if p.pass.span != nil { // the context has that of the function whose child has changed
		ctx, span = p.pass.engine.spans.attempt(ctx, d, spanOf(p.pass.key, p.pass.object.writes.UID()))
	}
	began := time.Now()
	resolution, err := d.Resolve(ctx, handler.NewDriftCall(d, arguments, change, handler.DriftCall{Drift: drift, EnsuredBy: id}))
	outcome := call.Outcome{Called: true, Final: err == nil || handler.IsPermanent(err), Err: err, Took: time.Since(began)}
	span.End(outcome, true)
	p.pass.engine.measure(p.pass.resource, d, outcome)
	return resolution, err
}

// Release deletes the children that the garbage collector does not reach.
func (p parent) Release(ctx context.Context, d *handler.Declaration) error {
	return p.pass.engine.converger.Release(ctx, p.call(ctx, d))
}

func (p parent) call(ctx context.Context, d *handler.Declaration) converge.Call {
	body := p.pass.session.Body()
	declared := p.pass.resource.Declared
	return converge.Call{
		Owner: converge.Owner{
			Operator: p.pass.engine.Settings.Name, Handler: d.ID,
			Parent: converge.Parent{Key: p.pass.key, UID: body.UID(), GVK: p.pass.resource.GVK()},
		},
		Options: d.Ensures, Places: convergence.ReadPlaces(body), Announce: p.storePlaces, Stopping: p.pass.term.stopping, Log: log.FromContext(ctx),
		IsDeclared: func(id string) bool {
			return slices.ContainsFunc(declared, func(other *handler.Declaration) bool { return other.Ensures != nil && other.ID == id })
		},
	}
}

// storePlaces writes the places of the children to the object, in the middle of a call. If others
// have changed the object, the call ends, and another pass repeats it.
func (p parent) storePlaces(_ context.Context, places convergence.Places) error {
	p.pass.enter(p.cycle)
	defer p.pass.leave(p.cycle)
	outcome, err := p.pass.session.Write(p.pass.writes(), write.Update{Decision: plan.Decision{
		AddFinalizer: !places.AreReachable(p.pass.key.Namespace),
		Annotations:  map[string]string{convergence.PlacesAnnotation: places.Text()},
	}})
	switch {
	case err != nil:
		return &handler.Interruption{Err: err}
	case outcome.Gone || outcome.ChangedByOthers || p.pass.term.isStopping():
		return &handler.Interruption{Err: errInterrupted}
	default:
		return nil
	}
}

// watchIndices calls the handlers of children for the changes of the indices that they watch, until
// the context is done. The function waits for the end.
func (e *Engine) watchIndices(ctx context.Context) (ended func(), err error) {
	var running sync.WaitGroup
	var stops []func()
	filled := map[handler.Table]bool{}
	for _, d := range e.Handlers.OfKind(handler.OnIndex) {
		filled[index.Of(d.Table)] = true
	}
	for _, d := range e.Handlers.OfKind(handler.OnRestore) {
		for _, table := range d.Watched {
			if !filled[index.Of(table)] {
				return nil, fmt.Errorf("%s: the handler %q has kopf.WatchIndex with an index that no function of its registry fills: declare the index with kopf.NewIndex or kopf.FillIndex in the same registry", d.DeclaredAt, d.Top().ID)
			}
			if e.spreads[d] == nil {
				if e.spreads == nil {
					e.spreads = map[*handler.Declaration]*triggers.Spread{}
				}
				e.spreads[d] = triggers.NewSpread()
			}
			stops = append(stops, index.Watch(table, e.spreads[d].Set))
		}
	}
	for _, spread := range e.spreads {
		running.Go(func() { spread.Run(ctx) })
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
		running.Wait()
	}, nil
}

package reconcile

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
	"github.com/kopf-go/kopf/pkg/storage"
)

// triggeredCalls are the calls of a pass for what has happened to other objects. They belong to
// no cycle: they are made in addition to its calls, or without one.
type triggeredCalls struct {
	*triggers.Calls              // nil if there are none
	runner          *call.Runner // nil if nothing is pending
}

// syncTriggers makes the triggers of the handlers that match the object now, and finds their calls.
func (p *pass) syncTriggers(ctx context.Context, c *cycle) error {
	declared := p.resource.Triggered
	if len(declared) == 0 {
		return nil
	}
	body := p.session.Body()
	set := &p.engine.objects.triggers
	scope := &handler.Cause{CallContext: c.CallContext, New: body.Raw()}
	matching := declared.Where(func(d *handler.Declaration) bool { return (d.Deleted || !c.Deleting) && d.InScope(scope) })
	err := set.Sync(triggers.Object{
		Key: p.key, UID: body.UID(), Handlers: matching, Declared: declared, New: func(d *handler.Declaration, failed bool) triggers.Trigger { return p.newTrigger(c, d, failed) },
		IsAhead: func(id string) bool { return p.isAhead(c, matching, id) },
		Record:  func(id string) (*storage.Record, error) { return p.engine.records.Record(ctx, body, id, p.report) },
	})
	c.calls.Calls = set.Calls(p.key, func(id string) bool {
		of := matching.Where(func(d *handler.Declaration) bool { return d.ID == id })
		return len(c.WithoutMisfits(of)) == 0
	})
	return err
}

// isAhead reports whether the restoration of children would be ahead of the handler of changes that returns them.
func (p *pass) isAhead(c *cycle, declared registry.Handlers, id string) bool {
	return slices.ContainsFunc(declared, func(d *handler.Declaration) bool {
		return d.ID == id && d.Kind == handler.OnRestore && p.hasToSee(c, d.Top().ID)
	})
}

// hasToSee reports whether a handler of changes has to be called for the present state of the object, in this cycle or
// in the next one.
func (p *pass) hasToSee(c *cycle, id string) bool {
	if c.NothingToDo() {
		return false
	}
	state := c.Cycle.Progress.Load(id)
	if !state.Finished() || state.Purpose != c.Reason {
		return slices.ContainsFunc(c.Handlers, func(d *handler.Declaration) bool { return d.ID == id })
	}
	states, err := p.engine.records.EndedAt(p.writes(), c.Cycle, p.session.Body(), p.report)
	ended, isEarlier := states[id]
	return err != nil || isEarlier && c.Cycle.IsDue(id, ended, c.New)
}

// newTrigger returns the trigger of a handler. If failed is set, an earlier process has failed
// to call it.
func (p *pass) newTrigger(c *cycle, d *handler.Declaration, failed bool) triggers.Trigger {
	engine := p.engine
	key := p.key
	uid := p.session.Body().UID()
	if d.Kind == handler.OnRestore {
		// The handler is called when another client changes the children of its object, or when an index changes.
		flag := triggers.NewFlag(d, func() { engine.enqueue(key) })
		// The children of a copy are not those of its original: there are none yet.
		if failed || p.object.copied || p.mustCatchUp(c, d.Top().ID) {
			flag.Set()
		}
		flag.AtStop(engine.converger.Follow(uid, d.Top().ID, flag.Set))
		if spread := engine.spreads[d]; spread != nil {
			flag.AtStop(spread.Add(key, flag))
		}
		return flag
	}
	parent := triggers.Parent{Link: linkOf(d, p.resource, uid), Namespace: key.Namespace, Enqueue: func() { engine.enqueue(key) }}
	return engine.children.NewFollowing(d, parent, failed || p.object.initial.Load())
}

// linkOf returns what an object and the children that a handler is about have in common.
func linkOf(d *handler.Declaration, parents *resource, uid types.UID) triggers.Link {
	if d.ChildLabel != "" {
		return triggers.LabeledWith(d.ChildLabel, string(uid))
	}
	return triggers.OwnedBy(parents.GVK().GroupKind(), uid)
}

// mustCatchUp reports whether children may have changed since the end of an earlier process, and their handler is not
// called because of the start. The cycle that was open then is still open, and the handler has ended in it.
func (p *pass) mustCatchUp(c *cycle, id string) bool {
	if !p.object.startedByPredecessor || p.object.handled || c.NothingToDo() {
		return false
	}
	return !slices.ContainsFunc(c.Handlers, func(d *handler.Declaration) bool { return d.ID == id && !c.HasFinished(d) })
}

// newTriggeredRunner returns the runner of the triggered calls.
func (p *pass) newTriggeredRunner(c *cycle) *call.Runner {
	calls := c.calls.Calls
	runner := p.newRunner(c, calls.Progress)
	prepare := runner.Prepare
	runner.Prepare = func(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext, call.EndSpan) {
		calls.Begin(d.ID)
		if p.isAhead(c, calls.Handlers, d.ID) {
			p.engine.objects.triggers.Repeat(p.key, d.ID)
		}
		return prepare(ctx, d)
	}
	runner.AfterAttempt = func(_ context.Context, d *handler.Declaration, o call.Outcome) {
		p.engine.measure(p.resource, d, o)
		if o.Succeeded() && o.Ignored == nil {
			// There can be many successes without any consequence for the object, so they are no events.
			p.report.Log.V(1).Info("The handler succeeded.", "handler", handler.ReportedID(d))
			return
		}
		p.report.Outcome(p.session.Body(), d.ID, o)
	}
	return runner
}

// update returns what the writer must know about the calls.
func (t *triggeredCalls) update() *record.Calls {
	if t.Calls == nil {
		return nil
	}
	return &record.Calls{Handlers: t.Handlers, Progress: t.Progress, Records: t.Records, Done: t.End}
}

// progressOf returns the progress of the calls if the handler is one of theirs, or nil.
func (t *triggeredCalls) progressOf(id string) *call.Progress {
	if t.Calls == nil || !t.Progress.Has(id) {
		return nil
	}
	return t.Progress
}

// next returns when the next pass must begin for the calls.
func (t *triggeredCalls) next() nextPass {
	if t.Calls == nil {
		return nextPass{}
	}
	delay, isWaiting := t.Progress.NextDelay()
	return nextPass{isWaiting, delay}
}

package recording

import (
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Decider decides about objects of one resource without an operator.
type Decider struct {
	Resource selector.Resource
	Handlers registry.Handlers // of the resource
	DiffBase storage.DiffBase
	Progress storage.Progress
	// AskedMemo is called if a filter asks for the memo of an object, which is empty here.
	AskedMemo func()
}

// ForResource returns the handlers that are declared for a resource.
func ForResource(all registry.Handlers, r selector.Resource) registry.Handlers {
	return all.Where(func(d *handler.Declaration) bool { return d.Selector.Match(r) })
}

// Pass decides about a pass over an object. A panic of a filter is an error.
func (d Decider) Pass(raw map[string]any, s Facts) (made Decision, err error) {
	err = handler.WithRecover(func() error {
		p, f := d.plan(raw, s)
		made = decisionOf(p, f)
		return nil
	})
	return made, err
}

// Explain returns why a handler is not called: the filter of the first declaration of the id.
func (d Decider) Explain(raw map[string]any, s Facts, id string) (why string) {
	why = "it is not declared for this resource"
	_ = handler.WithRecover(func() error {
		p, _ := d.plan(raw, s)
		for _, one := range d.Handlers {
			if one.ID != id {
				continue
			}
			mismatch := one.Mismatch(&p.Cause)
			if !one.Kind.IsChange() {
				mismatch = handler.Mismatch{}
			}
			why = fmt.Sprintf("declared at %s", one.DeclaredAt)
			if !mismatch.Matches() {
				why = fmt.Sprintf("%s does not match; %s", mismatch, why)
			}
			return nil
		}
		return nil
	})
	return why
}

// Event decides which event handlers are called for a watch event.
func (d Decider) Event(raw map[string]any, kind string) (made Decision, err error) {
	body := object.NewBody(raw)
	of := &handler.Cause{CallContext: d.callContext(body), New: raw, EventType: apiwatch.EventType(kind)}
	err = handler.WithRecover(func() error {
		made.Due = idsOf(d.Handlers.Where(func(one *handler.Declaration) bool {
			return one.Kind == handler.OnEvent && one.InScope(of)
		}))
		return nil
	})
	return made, err
}

func (d Decider) callContext(body *object.Body) handler.CallContext {
	return handler.CallContext{Body: body, Resource: &d.Resource, Logger: logr.Discard(), Memo: func() *memo.Values {
		if d.AskedMemo != nil {
			d.AskedMemo()
		}
		return memo.NewValues(nil)
	}}
}

// plan makes the plan for an object again.
func (d Decider) plan(raw map[string]any, s Facts) (*plan.Plan, plan.Facts) {
	body := object.NewBody(raw)
	f := plan.Facts{
		Arguments: d.callContext(body), Handlers: plan.Sort(d.Handlers), HasFinalizer: s.Held,
		Memory: plan.Memory{Initial: s.Initial},
		Stored: record.Stored{Base: s.Old, Old: s.Old, Progress: progressOf(s.Records)},
	}
	f.Stored.New = d.Progress.Clear(d.DiffBase.Build(body, f.Handlers.Fields))
	for _, id := range f.Handlers.IDs {
		f.Stored.Progress.Load(id)
	}
	return plan.Make(f), f
}

// progressOf returns the progress of handlers with these records.
func progressOf(records map[string]Record) *call.Progress {
	return call.NewProgress(func(id string) *storage.Record {
		stored, known := records[id]
		if !known {
			return nil
		}
		return &storage.Record{Purpose: cause.Reason(stored.Reason), Retries: stored.Attempts, Success: stored.Ended}
	})
}

// recordsOf returns the records of the declared handlers.
func recordsOf(p *plan.Plan) map[string]Record {
	if p.Cycle == nil {
		return nil
	}
	records := map[string]Record{}
	for _, id := range p.Cycle.Declared {
		if stored := p.Cycle.Progress.Load(id).Stored(); stored != nil {
			records[id] = Record{Reason: string(stored.Purpose), Attempts: stored.Retries, Ended: stored.Finished()}
		}
	}
	return records
}

// decisionOf returns what is recorded of a plan.
func decisionOf(p *plan.Plan, f plan.Facts) Decision {
	made := Decision{Reason: string(p.Reason), Children: childrenOf(&p.Cause, f.Handlers.Declared), Background: idsOf(p.Background)}
	for _, item := range p.Diff {
		made.Diff = append(made.Diff, fmt.Sprintf("%s %s", item.Op, item.Path)) // without values
	}
	if p.Reason.Handled() {
		made.Due = idsOf(p.Selected(f))
	}
	return made
}

// childrenOf returns the handlers that an object has for what happens to its children.
func childrenOf(of *handler.Cause, handlers registry.Handlers) []string {
	scope := &handler.Cause{CallContext: of.CallContext, New: of.CallContext.Body.Raw()}
	return idsOf(handlers.Where(func(d *handler.Declaration) bool {
		return (d.Kind.IsTriggered() || d.Kind == handler.OnDrift) && (d.Deleted || !of.CallContext.Body.Deleting()) && d.InScope(scope)
	}))
}

// idsOf returns the sorted ids, each once.
func idsOf(handlers registry.Handlers) []string {
	ids := plan.IDsOf(handlers)
	slices.Sort(ids)
	return slices.Compact(ids)
}

package recording

import (
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
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
func (d Decider) Pass(raw map[string]any, s Situation) (made Decision, err error) {
	err = handler.WithRecover(func() error {
		made = decisionOf(d.cause(raw, s), d.Handlers, s)
		return nil
	})
	return made, err
}

// Explain returns why a handler is not due: the filter of the first declaration of the id.
func (d Decider) Explain(raw map[string]any, s Situation, id string) (why string) {
	why = "it is not declared for this resource"
	_ = handler.WithRecover(func() error {
		of := d.cause(raw, s)
		for _, one := range d.Handlers {
			if one.ID != id {
				continue
			}
			mismatch := one.Mismatch(of)
			if !one.Kind.IsChange() {
				mismatch = handler.Mismatch{}
			}
			if why = fmt.Sprintf("declared at %s", one.DeclaredAt); !mismatch.Matches() {
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

// cause returns what has happened to an object.
func (d Decider) cause(raw map[string]any, s Situation) *handler.Cause {
	body := object.NewBody(raw)
	current := d.Progress.Clear(d.DiffBase.Build(body, fieldsOf(d.Handlers)))
	made := &handler.Cause{CallContext: d.callContext(body), New: current, Old: s.Old}
	var before any
	change := cause.Never
	if s.Old != nil {
		before, change = s.Old, cause.Same
	}
	made.Diff = diff.Compute(before, current, diff.Full)
	if s.Old != nil && (len(made.Diff) > 0 || s.Open) {
		change = cause.Changed
	}
	made.Reason, made.Initial = cause.Detect(cause.Observation{Deleting: body.Deleting(), Held: s.Held, Change: change, Initial: s.Initial})
	return made
}

// decisionOf returns the handlers that are due for a cause.
func decisionOf(of *handler.Cause, handlers registry.Handlers, s Situation) Decision {
	made := Decision{Reason: string(of.Reason), Diff: linesOf(of.Diff)}
	if of.Reason.Handled() {
		changing := handlers.Where(func(d *handler.Declaration) bool { return d.Kind.IsChange() })
		if of.Reason == cause.Update && len(of.Diff) == 0 {
			made.Due = idsOf(changing.OfKind(handler.OnResume).Selected(of))
		} else {
			made.Due = idsOf(changing.Selected(of))
		}
		retrying := func(id string, _ cause.Reason) bool { return slices.Contains(s.Retrying, id) }
		made.Due = sorted(append(made.Due, idsOf(changing.TakenBack(of, changing.Selected(of), retrying))...))
	}
	made.Children = childrenOf(of, handlers)
	if !of.CallContext.Body.Deleting() {
		whole := &handler.Cause{CallContext: of.CallContext, New: of.CallContext.Body.Raw()}
		made.Background = idsOf(handlers.Where(func(d *handler.Declaration) bool { return d.Kind.IsBackground() && d.InScope(whole) }))
	}
	return made
}

// childrenOf returns the handlers that an object has for what happens to its children.
func childrenOf(of *handler.Cause, handlers registry.Handlers) []string {
	whole := &handler.Cause{CallContext: of.CallContext, New: of.CallContext.Body.Raw()}
	return idsOf(handlers.Where(func(d *handler.Declaration) bool {
		return (d.Kind.IsTriggered() || d.Kind == handler.OnDrift) && (d.Deleted || !of.CallContext.Body.Deleting()) && d.InScope(whole)
	}))
}

// linesOf describes what has changed, without values.
func linesOf(d diff.Diff) []string {
	var lines []string
	for _, item := range d {
		lines = append(lines, fmt.Sprintf("%s %s", item.Op, item.Path))
	}
	return lines
}

// fieldsOf returns the fields that belong to the essence because handlers name them.
func fieldsOf(handlers registry.Handlers) []object.Path {
	var fields []object.Path
	for _, d := range handlers {
		if d.Kind.ExtendsEssence() && d.Field != nil {
			fields = append(fields, d.Field)
		}
	}
	return fields
}

func idsOf(handlers registry.Handlers) []string {
	var ids []string
	for _, d := range handlers {
		ids = append(ids, d.ID)
	}
	return sorted(ids)
}

func sorted(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

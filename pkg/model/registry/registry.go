package registry

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Registry is a set of declared handlers. The zero value is ready to use, and
// safe for concurrent use. An operator takes what is in it when it starts; later
// declarations are for later operators.
type Registry struct {
	mu           sync.Mutex
	declarations []*handler.Declaration // of objects
	activities   Handlers               // of the operator as a whole
	problems     []error
}

// Add takes a declaration, or the reason why there is none.
func (r *Registry) Add(d *handler.Declaration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.problems = append(r.problems, err)
		return
	}
	if d.Kind.IsActivity() {
		r.activities = append(r.activities, d)
		return
	}
	r.declarations = append(r.declarations, d)
}

// Activities are the handlers of the operator as a whole, in their order. Mistakes
// in them are among those that Handlers returns.
func (r *Registry) Activities() Handlers {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.activities)
}

// Handlers are the declarations of objects in their order, or all mistakes in them. The
// scheme tells the kinds of typed handlers, which are declared for a Go type.
func (r *Registry) Handlers(scheme *runtime.Scheme) (Handlers, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	problems := slices.Clone(r.problems)
	var handlers Handlers
	for _, d := range r.declarations {
		bound, err := d.Bind(scheme)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		handlers = append(handlers, bound)
	}
	problems = append(problems, handlers.sameSelector()...)
	problems = append(problems, handlers.samePath()...)
	problems = append(problems, r.activities.sameKind()...)
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("the handlers cannot be used as they are declared:\n%w", err)
	}
	return handlers, nil
}

// Handlers is a list of declarations in their order.
type Handlers []*handler.Declaration

// sameSelector finds the conflicts that are visible before the resources are.
func (h Handlers) sameSelector() []error {
	var problems []error
	for _, sel := range h.Selectors() {
		same := h.Where(func(d *handler.Declaration) bool { return d.Selector == sel })
		problems = append(problems, same.Conflicts())
	}
	return problems
}

// sameKind finds the conflicts of activities: within a kind, the results have ids.
func (h Handlers) sameKind() []error {
	var problems []error
	for _, kind := range []handler.Kind{handler.OnStartup, handler.OnCleanup, handler.OnLogin, handler.OnProbe} {
		problems = append(problems, h.OfKind(kind).Conflicts())
	}
	return problems
}

// OfKind returns the handlers of one kind, in order.
func (h Handlers) OfKind(kind handler.Kind) Handlers {
	return h.Where(func(d *handler.Declaration) bool { return d.Kind == kind })
}

// samePath finds validations and mutations with one id, of whatever resource. The
// API server would ask both at one path, and take a change for an error when it has
// asked for a validation.
func (h Handlers) samePath() []error {
	first := map[string]*handler.Declaration{}
	var problems []error
	for _, d := range h.Admission() {
		other, taken := first[d.ID]
		if !taken {
			first[d.ID] = d
		} else if other.Kind != d.Kind {
			problems = append(problems, fmt.Errorf("%s: the id %q of the %s handler is taken by the %s handler at %s, "+
				"and both would be called at one path: give one of them another kopf.ID", d.DeclaredAt, d.ID, d.Kind, other.Kind, other.DeclaredAt))
		}
	}
	return problems
}

// Conflicts finds ids that two functions claim among the handlers of one
// resource. Both would write their progress under one key, and each would take
// the other's success for its own. Admission handlers keep no progress, and stand
// in no one's way but their own.
func (h Handlers) Conflicts() error {
	type claim struct {
		id        string
		admission handler.Kind // empty for all others, which share the keys
	}
	first := map[claim]*handler.Declaration{}
	var problems []error
	for _, d := range h {
		claimed := claim{id: d.ID}
		if d.Kind.IsAdmission() {
			claimed.admission = d.Kind
		}
		if other, taken := first[claimed]; taken {
			problems = append(problems, d.CheckConflict(other))
		} else {
			first[claimed] = d
		}
	}
	return errors.Join(problems...)
}

// Selectors are the different selectors of the handlers, in order.
func (h Handlers) Selectors() []selector.Selector {
	var selectors []selector.Selector
	for _, d := range h {
		if !slices.Contains(selectors, d.Selector) {
			selectors = append(selectors, d.Selector)
		}
	}
	return selectors
}

// Admission are the handlers that the API server calls.
func (h Handlers) Admission() Handlers {
	return h.Where(func(d *handler.Declaration) bool { return d.Kind.IsAdmission() })
}

// Watching are the handlers that need to know of all objects: all others.
func (h Handlers) Watching() Handlers {
	return h.Where(func(d *handler.Declaration) bool { return !d.Kind.IsAdmission() })
}

// Where are the handlers for which the condition holds, in order.
func (h Handlers) Where(condition func(*handler.Declaration) bool) Handlers {
	var found Handlers
	for _, d := range h {
		if condition(d) {
			found = append(found, d)
		}
	}
	return found
}

// Selected are the handlers to be called on the cause; of several
// declarations of one handler only the first, so that it is called once.
func (h Handlers) Selected(cause *handler.Cause) Handlers {
	var selected Handlers
	for _, d := range h {
		repeated := slices.ContainsFunc(selected, d.IsSame)
		if !repeated && d.Selects(cause) {
			selected = append(selected, d)
		}
	}
	return selected
}

// InScope reports whether the object is any business of these handlers.
func (h Handlers) InScope(cause *handler.Cause) bool {
	return slices.ContainsFunc(h, func(d *handler.Declaration) bool { return d.InScope(cause) })
}

// HoldDeletion reports whether the object needs the finalizer for any of these handlers.
func (h Handlers) HoldDeletion(cause *handler.Cause) bool {
	return slices.ContainsFunc(h, func(d *handler.Declaration) bool {
		return d.HoldsDeletion() && d.InScope(cause)
	})
}

package registry

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/kopf/handler"
	"github.com/kopf-go/kopf/pkg/kopf/selector"
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
	if d.Kind.Activity() {
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
		problems = append(problems, h.Of(kind).Conflicts())
	}
	return problems
}

// Of are the handlers of one kind, in order.
func (h Handlers) Of(kind handler.Kind) Handlers {
	return h.Where(func(d *handler.Declaration) bool { return d.Kind == kind })
}

// Conflicts finds ids that two functions claim among the handlers of one
// resource. Both would write their progress under one key, and each would take
// the other's success for its own.
func (h Handlers) Conflicts() error {
	first := map[string]*handler.Declaration{}
	var problems []error
	for _, d := range h {
		if other, taken := first[d.ID]; taken {
			problems = append(problems, d.Conflict(other))
		} else {
			first[d.ID] = d
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

// Selected are the handlers to be called on the occasion; of several
// declarations of one handler only the first, so that it is called once.
func (h Handlers) Selected(occasion *handler.Occasion) Handlers {
	var selected Handlers
	for _, d := range h {
		repeated := slices.ContainsFunc(selected, d.Same)
		if !repeated && d.Selects(occasion) {
			selected = append(selected, d)
		}
	}
	return selected
}

// InScope tells whether the object is any business of these handlers.
func (h Handlers) InScope(occasion *handler.Occasion) bool {
	return slices.ContainsFunc(h, func(d *handler.Declaration) bool { return d.InScope(occasion) })
}

// HoldDeletion tells whether the object needs the finalizer for any of these handlers.
func (h Handlers) HoldDeletion(occasion *handler.Occasion) bool {
	return slices.ContainsFunc(h, func(d *handler.Declaration) bool {
		return d.HoldsDeletion() && d.InScope(occasion)
	})
}

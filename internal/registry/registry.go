package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/internal/function"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Registry is a set of declared handlers. The zero value is ready to use, and safe for
// concurrent use. An operator uses the handlers that are declared when it starts; later
// declarations affect only operators that start later.
type Registry struct {
	mu           sync.Mutex
	declarations []*handler.Declaration // of objects
	activities   Handlers               // of the operator
	needs        []Need                 // of handlers with a client
	conversions  []*conversion.Declaration
	problems     []error
	misplaced    []error // declarations in nil registries

	reports *Registry // not nil: the registry is nil for users, and this one collects the mistakes
}

// Nil returns what a nil registry of users is: without handlers, and each declaration in it is a
// mistake, which another registry collects.
func Nil(reports *Registry) *Registry { return &Registry{reports: reports} }

// Refuse adds the mistake of a declaration in a nil registry.
func (r *Registry) Refuse(what string) {
	place := function.Caller()
	r.reports.mu.Lock()
	defer r.reports.mu.Unlock()
	r.reports.misplaced = append(r.reports.misplaced, fmt.Errorf("%s: %s is declared in a registry that is nil: set it to kopf.NewRegistry() or kopf.DefaultRegistry before", place, what))
}

// Misplaced returns the mistakes of declarations in nil registries, which Handlers returns, too.
func (r *Registry) Misplaced() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.misplaced...)
}

// Add adds a declaration, or the error of an invalid one.
func (r *Registry) Add(d *handler.Declaration, err error) {
	if r.reports != nil {
		what := "a handler"
		if err == nil {
			what = handler.Describe(d)
		}
		r.Refuse(what)
		return
	}
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

// AddConditions declares that the status of the objects has the standard conditions, at a place outside the source.
func (r *Registry) AddConditions(place string, sel selector.Selector) {
	r.Add(handler.ForConditionsAt(place, sel, nil))
}

// Activities returns the handlers of the operator itself in their order. Handlers returns
// the mistakes in them.
func (r *Registry) Activities() Handlers {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.activities)
}

// AddConversion adds the declaration of a conversion, or the error of an invalid one.
func (r *Registry) AddConversion(d *conversion.Declaration, err error) {
	if r.reports != nil {
		what := "a conversion"
		if err == nil {
			what = d.String()
		}
		r.Refuse(what)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.problems = append(r.problems, err)
		return
	}
	r.conversions = append(r.conversions, d)
}

// Conversions returns the conversions in their order, without those that have a mistake. Handlers returns the
// mistakes in them. The scheme provides the versions of Go types.
func (r *Registry) Conversions(scheme *runtime.Scheme) conversion.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	set, _ := conversion.Bind(r.conversions, scheme)
	return set
}

// HasWebhooks reports whether the API server calls the operator: there are admission handlers or conversions.
func (r *Registry) HasWebhooks() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conversions) > 0 || slices.ContainsFunc(r.declarations, func(d *handler.Declaration) bool { return d.Kind.IsAdmission() })
}

// Handlers returns the handlers of objects in their order, and all mistakes in the
// declarations. With mistakes, it returns the handlers without one, for further checks. The scheme provides the kinds of typed handlers, which are declared for a
// Go type.
func (r *Registry) Handlers(scheme *runtime.Scheme) (Handlers, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	problems := slices.Concat(r.misplaced, r.problems)
	var handlers Handlers
	for _, d := range r.declarations {
		bound, err := d.Bind(scheme)
		if err != nil {
			problems = appendNew(problems, err)
			continue
		}
		handlers = append(handlers, bound)
	}
	for _, sel := range handlers.Selectors() { // conflicts that are known before the resources
		same := handlers.Where(func(d *handler.Declaration) bool { return d.Selector == sel })
		problems = append(problems, same.Conflicts())
	}
	problems = append(problems, handlers.samePath()...)
	if len(r.conversions) > 0 {
		_, err := conversion.Bind(r.conversions, scheme)
		problems = append(problems, err)
	}
	for _, kind := range []handler.Kind{handler.OnStartup, handler.OnCleanup, handler.OnLogin, handler.OnProbe} {
		problems = append(problems, r.activities.OfKind(kind).Conflicts())
	}
	err := errors.Join(problems...)
	if err == nil {
		err = errors.Join(handlers.checkDrift(), handlers.CheckOrder())
	}
	if err != nil {
		return handlers, fmt.Errorf("the declarations of handlers are invalid:\n%w", err)
	}
	return handlers, nil
}

// Handlers is an ordered list of declarations.
type Handlers []*handler.Declaration

// CheckName returns an error if handlers require that the operator has a name, and it has none.
func (h Handlers) CheckName(name string) error {
	i := slices.IndexFunc(h, func(d *handler.Declaration) bool { return d.Kind.IsTriggered() })
	if name != "" || i < 0 {
		return nil
	}
	return fmt.Errorf("%s: %s needs an operator with a name that stays the same for ever: set settings.Name in the options of the operator, or by Configure of the registry", h[i].DeclaredAt, handler.Describe(h[i]))
}

// checkDrift returns an error if handlers of drift can never be called.
func (h Handlers) checkDrift() error {
	ensured := map[string]bool{}
	for _, d := range h.Where(func(d *handler.Declaration) bool { return d.Ensures != nil }) {
		ensured[d.Top().ID] = true
	}
	for _, d := range h.OfKind(handler.OnDrift) {
		if len(ensured) == 0 {
			return fmt.Errorf("%s: the handler %q is about the children of kopf.Ensure, which is not declared", d.DeclaredAt, d.ID)
		}
		for _, id := range d.EnsuredBy {
			if !ensured[id] {
				return fmt.Errorf("%s: the handler %q has kopf.EnsuredBy(%q), but no kopf.Ensure has this id: there are %s", d.DeclaredAt, d.ID, id, strings.Join(slices.Sorted(maps.Keys(ensured)), ", "))
			}
		}
	}
	return nil
}

// OfKind returns the handlers of one kind in order.
func (h Handlers) OfKind(kind handler.Kind) Handlers {
	return h.Where(func(d *handler.Declaration) bool { return d.Kind == kind })
}

// samePath returns the validations and mutations that have the same id, for any resource.
// The API server would call both at the same path, and reject changes in the response to
// a validation.
func (h Handlers) samePath() []error {
	first := map[string]*handler.Declaration{}
	var problems []error
	for _, d := range h.Admission() {
		other, taken := first[d.ID]
		if !taken {
			first[d.ID] = d
		} else if other.Kind != d.Kind {
			problems = append(problems, fmt.Errorf("%s: the id %q of the %s handler is taken by the %s handler at %s, "+
				"and both would be called at the same path: set another kopf.ID for one of them", d.DeclaredAt, d.ID, d.Kind, other.Kind, other.DeclaredAt))
		}
	}
	return problems
}

// Conflicts returns an error for ids that several functions share among the handlers of
// one resource. They would store their progress under the same key, and each would use the
// other's result. Admission handlers have no progress, and can conflict only with each
// other.
func (h Handlers) Conflicts() error {
	type claim struct {
		id        string
		admission handler.Kind // empty for all others, which share the keys
	}
	first := map[claim]*handler.Declaration{}
	limited := map[claim]*handler.Declaration{}
	var problems []error
	for _, d := range h {
		claimed := claim{id: d.ID}
		if d.Kind.IsAdmission() {
			claimed.admission = d.Kind
		}
		if other, taken := first[claimed]; taken {
			problems = appendNew(problems, d.CheckConflict(other))
			problems = appendNew(problems, handler.CheckRevisions(d, other))
		} else {
			first[claimed] = d
		}
		if d.Limit == 0 {
			continue
		}
		if other, taken := limited[claimed]; taken {
			problems = appendNew(problems, handler.CheckLimits(d, other))
		} else {
			limited[claimed] = d
		}
	}
	return errors.Join(problems...)
}

// appendNew adds a problem, unless its text is known: what one function has declared can consist of
// several declarations.
func appendNew(problems []error, err error) []error {
	isKnown := func(known error) bool { return known.Error() == err.Error() }
	if err == nil || slices.ContainsFunc(problems, isKnown) {
		return problems
	}
	return append(problems, err)
}

// Count returns the number of handlers as users count them: Ensure declares one, and Conditions none.
func (h Handlers) Count() int {
	type ensured struct {
		id, place string
		of        selector.Selector
	}
	count := 0
	known := map[ensured]bool{}
	for _, d := range h {
		one := ensured{d.Top().ID, d.DeclaredAt, d.Selector}
		if d.Kind == handler.Conditions || d.Ensures != nil && known[one] {
			continue
		}
		known[one] = d.Ensures != nil
		count++
	}
	return count
}

// Selectors returns the distinct selectors of the handlers and of their children, in order.
func (h Handlers) Selectors() []selector.Selector {
	var selectors []selector.Selector
	add := func(sel selector.Selector) {
		if !slices.Contains(selectors, sel) {
			selectors = append(selectors, sel)
		}
	}
	for _, d := range h {
		add(d.Selector)
		for _, children := range d.ChildSelectors() {
			add(children)
		}
	}
	return selectors
}

// Places returns where the handlers with a selector are declared, also if it is that of their children.
func (h Handlers) Places(sel selector.Selector) []string {
	var places []string
	for _, d := range h {
		if (d.Selector == sel || slices.Contains(d.ChildSelectors(), sel)) && !slices.Contains(places, d.DeclaredAt) {
			places = append(places, d.DeclaredAt)
		}
	}
	return places
}

// Admission returns the handlers that the API server calls.
func (h Handlers) Admission() Handlers {
	return h.Where(func(d *handler.Declaration) bool { return d.Kind.IsAdmission() })
}

// Watching returns the handlers that need to watch objects: all except admission handlers.
func (h Handlers) Watching() Handlers {
	return h.Where(func(d *handler.Declaration) bool { return !d.Kind.IsAdmission() })
}

// Where returns the handlers for which the condition holds, in order.
func (h Handlers) Where(condition func(*handler.Declaration) bool) Handlers {
	var found Handlers
	for _, d := range h {
		if condition(d) {
			found = append(found, d)
		}
	}
	return found
}

// Selected returns the handlers to call for the cause. If a handler has several matching
// declarations, only one is included, so that it is called once: the first that is not for
// resuming, because a resumption is not a change, or else the first.
func (h Handlers) Selected(cause *handler.Cause) Handlers {
	var selected Handlers
	for _, d := range h {
		i := slices.IndexFunc(selected, d.IsSame)
		switch {
		case i >= 0 && (selected[i].Kind != handler.OnResume || d.Kind == handler.OnResume), !d.Selects(cause):
		case i >= 0:
			selected[i] = d
		default:
			selected = append(selected, d)
		}
	}
	return selected
}

// TakenBack returns the handlers that are retried for a change that was taken back, without
// those that are selected anyway. They are called once more, with equal old and new states,
// because the failed attempts may have had effects.
func (h Handlers) TakenBack(observed *handler.Cause, selected Handlers, isRetrying func(id string, reason cause.Reason) bool) Handlers {
	var found Handlers
	for _, d := range h {
		isKnown := slices.ContainsFunc(selected, d.IsSame) || slices.ContainsFunc(found, d.IsSame)
		if !isKnown && isRetrying(d.ID, observed.Reason) && observed.IsTakenBack(d) {
			found = append(found, d)
		}
	}
	return found
}

// Followed returns the handlers that have ended and that selected ones follow in an order, without those that are selected
// anyway: the change that they were for was taken back.
func (h Handlers) Followed(selected Handlers, hasEnded func(id string) bool) Handlers {
	isFollowed := func(d *handler.Declaration) bool {
		return slices.ContainsFunc(selected, func(other *handler.Declaration) bool {
			return slices.ContainsFunc(other.After, d.IsCalled) || slices.ContainsFunc(other.AfterFailure, d.IsCalled)
		})
	}
	var found Handlers
	for _, d := range h {
		isD := func(other *handler.Declaration) bool { return other.ID == d.ID }
		if isFollowed(d) && hasEnded(d.ID) && !slices.ContainsFunc(selected, isD) && !slices.ContainsFunc(found, isD) {
			found = append(found, d)
		}
	}
	return found
}

// InScope reports whether any of these handlers handles the object.
func (h Handlers) InScope(cause *handler.Cause) bool {
	return slices.ContainsFunc(h, func(d *handler.Declaration) bool { return d.InScope(cause) })
}

// HoldDeletion reports whether the object needs the finalizer for any of these handlers.
func (h Handlers) HoldDeletion(cause *handler.Cause) bool {
	return slices.ContainsFunc(h, func(d *handler.Declaration) bool {
		return d.HoldsDeletion() && d.InScope(cause)
	})
}

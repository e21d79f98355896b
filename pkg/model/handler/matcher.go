package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/internal/function"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Predicate accepts or rejects an object based on everything that a handler gets. It is
// called often and concurrently for many objects, so it must be fast and must not have
// side effects.
//
// Specification: Filtering, "Callback filters".
type Predicate = func(Arguments) bool

// Matcher accepts or rejects one value: of a label, an annotation, or a field. The zero
// Matcher means that there is no filter.
//
// Specification: Filtering, "Metadata filters" and "Value callbacks".
type Matcher struct {
	matches func(object.Value, Arguments) bool
	// The API server can also check presence and equality, but not callbacks, so they are
	// distinguished.
	want any
	// place is where a function is declared that decides.
	place string
	err   error // a value that cannot be compared; reported with the declaration
}

type presence bool

// Equal matches values that equal the given one by the rules of JSON: 1 equals 1.0, but
// neither "1" nor true.
func Equal(value any) Matcher {
	want, err := object.Normalize(value)
	return Matcher{want: want, err: err, matches: func(v object.Value, _ Arguments) bool { return v.Equals(want) }}
}

// Present matches any existing value, including an empty string.
func Present() Matcher {
	return Matcher{want: presence(true), matches: func(v object.Value, _ Arguments) bool { return v.Exists() }}
}

// Absent matches an absent value.
func Absent() Matcher {
	return Matcher{want: presence(false), matches: func(v object.Value, _ Arguments) bool { return !v.Exists() }}
}

// MatchFunc matches values that the function accepts. The function is also called for
// absent values. The rules of Predicate apply to it.
//
// Specification: Filtering, "Value callbacks".
func MatchFunc(test func(object.Value, Arguments) bool) Matcher {
	if test == nil {
		return Matcher{err: errors.New("MatchFunc has no function")}
	}
	return Matcher{matches: test, place: function.Place(test)}
}

// Matches reports whether the matcher accepts the value.
func (m Matcher) Matches(v object.Value, a Arguments) bool {
	return m.matches == nil || m.matches(v, a)
}

// String describes which values match: `"web"`, "any value", "no value", or the place of the
// function that decides.
func (m Matcher) String() string {
	switch want := m.want.(type) {
	case presence:
		if want {
			return "any value"
		}
		return "no value"
	case nil:
		if m.place == "" {
			return "what a combination of filters accepts"
		}
		return "what the function at " + m.place + " accepts"
	default:
		text, err := json.Marshal(want)
		if err != nil {
			return fmt.Sprint(want)
		}
		return string(text)
	}
}

// IsZero reports whether the matcher is no filter.
func (m Matcher) IsZero() bool { return m.matches == nil }

// Constant returns the value that a matcher of Equal compares with.
func (m Matcher) Constant() (value any, ok bool) {
	_, isPresence := m.want.(presence)
	return m.want, m.want != nil && !isPresence
}

// runsCode reports whether the filter is, or may have, a function of users.
func (m Matcher) runsCode() bool { return m.matches != nil && m.want == nil }

// Condition is a type that All, Any, None, and Not can combine: predicates or matchers.
// They are checked in order until the result is certain.
//
// Specification: Filtering, "Callback helpers".
type Condition interface {
	func(Arguments) bool | Matcher
}

// All accepts if all of the conditions accept.
func All[C Condition](conditions ...C) C {
	return combine(conditions, logic{decisive: false, verdict: false})
}

// Any accepts if at least one of the conditions accepts.
func Any[C Condition](conditions ...C) C {
	return combine(conditions, logic{decisive: true, verdict: true})
}

// None accepts if none of the conditions accepts.
func None[C Condition](conditions ...C) C {
	return combine(conditions, logic{decisive: true, verdict: false})
}

// Not accepts if the condition does not.
func Not[C Condition](condition C) C { return None(condition) }

// logic defines how to combine several results: the first decisive one determines the
// verdict; without one, the verdict is the opposite.
type logic struct{ decisive, verdict bool }

func decide[C any](l logic, conditions []C, ask func(C) bool) bool {
	for _, condition := range conditions {
		if ask(condition) == l.decisive {
			return l.verdict
		}
	}
	return !l.verdict
}

func combine[C Condition](conditions []C, l logic) C {
	var combined any
	switch list := any(conditions).(type) {
	case []Matcher:
		combined = combineMatchers(list, l)
	case []func(Arguments) bool:
		combined = combinePredicates(list, l)
	}
	return combined.(C) //nolint:errcheck // C can only be one of the two types above
}

func combineMatchers(matchers []Matcher, l logic) Matcher {
	combined := MatchFunc(func(v object.Value, a Arguments) bool {
		return decide(l, matchers, func(m Matcher) bool { return m.Matches(v, a) })
	})
	combined.place = "" // of a function in the library
	for _, matcher := range matchers {
		err := matcher.err
		if err == nil && matcher.IsZero() {
			err = errors.New("one of the combined matchers is empty")
		}
		combined.err = errors.Join(combined.err, err)
	}
	return combined
}

// combinePredicates returns nil if any predicate is nil, so that When rejects it.
func combinePredicates(predicates []Predicate, l logic) Predicate {
	if slices.ContainsFunc(predicates, func(p Predicate) bool { return p == nil }) {
		return nil
	}
	return func(a Arguments) bool {
		return decide(l, predicates, func(p Predicate) bool { return p(a) })
	}
}

// Concerns reports whether the filters of labels, annotations, and predicates of the handler
// select the object, whether or not it has the field of the handler.
func (o *Cause) Concerns(d *Declaration) bool {
	m := matching{d: d, o: o}
	return m.labels().Matches() && m.callbacks().Matches()
}

// OutOfScope returns the first filter because of which the handler never applies to the object
// as it is. The result Matches if the handler is InScope.
func (o *Cause) OutOfScope(d *Declaration) Mismatch {
	m := matching{d: d, o: o}
	return m.scope()
}

// ConstantMismatch is OutOfScope for the filters that no function of the user decides. It reports
// whether these are all filters of the handler.
func (o *Cause) ConstantMismatch(d *Declaration) (mismatch Mismatch, all bool) {
	constant := *d
	constant.Predicates = nil
	constant.decoding = nil
	constant.Labels, constant.Annotations = constantOf(d.Labels), constantOf(d.Annotations)
	all = len(d.Predicates)+len(d.decoding) == 0 && len(constant.Labels) == len(d.Labels) && len(constant.Annotations) == len(d.Annotations)
	if d.Value.isFunction() {
		constant.Field = nil
		all = false
	}
	return o.OutOfScope(&constant), all
}

func constantOf(filters map[string]Matcher) map[string]Matcher {
	constant := maps.Clone(filters)
	maps.DeleteFunc(constant, func(_ string, m Matcher) bool { return m.isFunction() })
	return constant
}

// isFunction reports whether a function decides, or a combination of matchers.
func (m Matcher) isFunction() bool { return m.matches != nil && m.want == nil }

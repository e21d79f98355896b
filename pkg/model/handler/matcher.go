package handler

import (
	"errors"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Predicate decides over a whole object, and over everything else that a
// handler gets. It is asked often, and about many objects at the same time; it
// must be quick and must not change anything.
//
// Specification: Filtering, "Callback filters".
type Predicate = func(Arguments) bool

// Matcher decides over one value: of a label, an annotation or a field. The
// zero Matcher is no filter at all.
//
// Specification: Filtering, "Metadata filters" and "Value callbacks".
type Matcher struct {
	matches func(object.Value, Arguments) bool
	// Presence and equality can be asked of the API server too, callbacks
	// cannot; hence they are told apart.
	want any
	err  error // a value that cannot be compared; reported with the declaration
}

type presence bool

// Equal matches a value that equals the given one as JSON does: 1 equals 1.0,
// but neither "1" nor true.
func Equal(value any) Matcher {
	want, err := object.Normalize(value)
	return Matcher{want: want, err: err, matches: func(v object.Value, _ Arguments) bool { return v.Equals(want) }}
}

// Present matches any value that is there. An empty string is there.
func Present() Matcher {
	return Matcher{want: presence(true), matches: func(v object.Value, _ Arguments) bool { return v.Exists() }}
}

// Absent matches the lack of a value.
func Absent() Matcher {
	return Matcher{want: presence(false), matches: func(v object.Value, _ Arguments) bool { return !v.Exists() }}
}

// MatchFunc matches what the callback accepts. It is also asked about absent values,
// and otherwise as a Predicate is.
//
// Specification: Filtering, "Value callbacks".
func MatchFunc(test func(object.Value, Arguments) bool) Matcher {
	if test == nil {
		return Matcher{err: errors.New("MatchFunc has no function")}
	}
	return Matcher{matches: test}
}

// Matches asks the matcher.
func (m Matcher) Matches(v object.Value, a Arguments) bool {
	return m.matches == nil || m.matches(v, a)
}

// IsZero reports whether there is no filter.
func (m Matcher) IsZero() bool { return m.matches == nil }

// Condition is what All, Any, None and Not combine: predicates, or matchers. They
// are asked in order, until the answer is certain.
//
// Specification: Filtering, "Callback helpers".
type Condition interface {
	func(Arguments) bool | Matcher
}

// All is satisfied when every one of the conditions is.
func All[C Condition](conditions ...C) C {
	return combine(conditions, logic{decisive: false, verdict: false})
}

// Any is satisfied when at least one of the conditions is.
func Any[C Condition](conditions ...C) C {
	return combine(conditions, logic{decisive: true, verdict: true})
}

// None is satisfied when not one of the conditions is.
func None[C Condition](conditions ...C) C {
	return combine(conditions, logic{decisive: true, verdict: false})
}

// Not is satisfied when the condition is not.
func Not[C Condition](condition C) C { return None(condition) }

// logic is how several answers become one: the first decisive one leads to the
// verdict, and without one it is the opposite.
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
	return combined.(C) //nolint:errcheck // the two cases above are all that C can be
}

func combineMatchers(matchers []Matcher, l logic) Matcher {
	combined := MatchFunc(func(v object.Value, a Arguments) bool {
		return decide(l, matchers, func(m Matcher) bool { return m.Matches(v, a) })
	})
	for _, matcher := range matchers {
		err := matcher.err
		if err == nil && matcher.IsZero() {
			err = errors.New("one of the combined matchers is empty")
		}
		combined.err = errors.Join(combined.err, err)
	}
	return combined
}

// combinePredicates returns nil if any predicate is, for When to refuse it.
func combinePredicates(predicates []Predicate, l logic) Predicate {
	if slices.ContainsFunc(predicates, func(p Predicate) bool { return p == nil }) {
		return nil
	}
	return func(a Arguments) bool {
		return decide(l, predicates, func(p Predicate) bool { return p(a) })
	}
}

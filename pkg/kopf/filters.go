package kopf

import (
	"slices"

	"github.com/kopf-go/kopf/internal/function"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Matcher accepts or rejects one value: of a label, an annotation, or a field. See Equal, Present,
// Absent, and MatchFunc.
//
// Specification: Filtering, "Metadata filters" and "Value callbacks".
type Matcher = handler.Matcher

// Equal matches a value that equals the given one by the rules of JSON: 1 equals 1.0.
func Equal(value any) Matcher { return handler.Equal(value) }

// Present matches any value, also an empty text.
func Present() Matcher { return handler.Present() }

// Absent matches if there is no value.
func Absent() Matcher { return handler.Absent() }

// MatchFunc matches the values for which the function returns true. It is called for absent
// values, too. It must be quick, and must not change anything.
func MatchFunc(test func(object.Value, Arguments) bool) Matcher {
	if test == nil {
		return handler.MatchFunc(nil, "")
	}
	return handler.MatchFunc(func(v object.Value, c *handler.Call) bool { return test(v, argumentsOf(c)) }, function.Place(test))
}

// All combines predicates of When, or matchers: all must accept. They are checked in order until
// the result is certain.
//
// Specification: Filtering, "Callback helpers".
func All[C Matcher | func(Arguments) bool](conditions ...C) C {
	return combine(conditions, handler.All, func(accepts func(func(Arguments) bool) bool, predicates []func(Arguments) bool) bool {
		return !slices.ContainsFunc(predicates, func(p func(Arguments) bool) bool { return !accepts(p) })
	})
}

// Any combines predicates of When, or matchers: at least one must accept.
func Any[C Matcher | func(Arguments) bool](conditions ...C) C {
	return combine(conditions, handler.Any, func(accepts func(func(Arguments) bool) bool, predicates []func(Arguments) bool) bool {
		return slices.ContainsFunc(predicates, accepts)
	})
}

// None combines predicates of When, or matchers: none may accept.
func None[C Matcher | func(Arguments) bool](conditions ...C) C {
	return combine(conditions, handler.None, func(accepts func(func(Arguments) bool) bool, predicates []func(Arguments) bool) bool {
		return !slices.ContainsFunc(predicates, accepts)
	})
}

// Not inverts a predicate of When, or a matcher.
func Not[C Matcher | func(Arguments) bool](condition C) C { return None(condition) }

// combine combines matchers, or predicates. A nil predicate makes nil, so that When rejects it.
func combine[C Matcher | func(Arguments) bool](
	conditions []C, matchers func(...Matcher) Matcher, predicates func(accepts func(func(Arguments) bool) bool, all []func(Arguments) bool) bool,
) C {
	var combined any
	switch list := any(conditions).(type) {
	case []Matcher:
		combined = matchers(list...)
	case []func(Arguments) bool:
		var predicate func(Arguments) bool
		if !slices.ContainsFunc(list, func(p func(Arguments) bool) bool { return p == nil }) {
			predicate = func(a Arguments) bool {
				return predicates(func(p func(Arguments) bool) bool { return p(a) }, list)
			}
		}
		combined = predicate
	}
	return combined.(C) //nolint:errcheck // C can only be one of the two types above
}

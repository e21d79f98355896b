package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Predicate accepts or rejects an object based on everything that a handler gets. It is
// called often and concurrently for many objects, so it must be fast and must not have
// side effects.
//
// Specification: Filtering, "Callback filters".
type Predicate struct {
	Accepts func(*Call) bool
	Place   string // where the user's function is declared
}

// Matcher accepts or rejects one value: of a label, an annotation, or a field. The zero
// Matcher means that there is no filter.
//
// Specification: Filtering, "Metadata filters" and "Value callbacks".
type Matcher struct {
	matches func(object.Value, *Call) bool
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
	return Matcher{want: want, err: err, matches: func(v object.Value, _ *Call) bool { return v.Equals(want) }}
}

// Present matches any existing value, including an empty string.
func Present() Matcher {
	return Matcher{want: presence(true), matches: func(v object.Value, _ *Call) bool { return v.Exists() }}
}

// Absent matches an absent value.
func Absent() Matcher {
	return Matcher{want: presence(false), matches: func(v object.Value, _ *Call) bool { return !v.Exists() }}
}

// MatchFunc matches values that the function accepts. The function is also called for
// absent values. The rules of Predicate apply to it. The place is where the user's function is
// declared.
//
// Specification: Filtering, "Value callbacks".
func MatchFunc(test func(object.Value, *Call) bool, place string) Matcher {
	if test == nil {
		return Matcher{err: errors.New("MatchFunc has no function")}
	}
	return Matcher{matches: test, place: place}
}

// Matches reports whether the matcher accepts the value, for tests of matchers. A function of MatchFunc
// gets no arguments.
func (m Matcher) Matches(v object.Value) bool { return m.accepts(v, nil) }

func (m Matcher) accepts(v object.Value, c *Call) bool { return m.matches == nil || m.matches(v, c) }

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

// All matches a value that all of the matchers match.
func All(matchers ...Matcher) Matcher {
	return combine(matchers, func(matches func(Matcher) bool) bool {
		return !slices.ContainsFunc(matchers, func(m Matcher) bool { return !matches(m) })
	})
}

// Any matches a value that at least one of the matchers matches.
func Any(matchers ...Matcher) Matcher {
	return combine(matchers, func(matches func(Matcher) bool) bool { return slices.ContainsFunc(matchers, matches) })
}

// None matches a value that none of the matchers matches.
func None(matchers ...Matcher) Matcher {
	return combine(matchers, func(matches func(Matcher) bool) bool { return !slices.ContainsFunc(matchers, matches) })
}

func combine(matchers []Matcher, decide func(matches func(Matcher) bool) bool) Matcher {
	combined := MatchFunc(func(v object.Value, c *Call) bool {
		return decide(func(m Matcher) bool { return m.accepts(v, c) })
	}, "")
	for _, matcher := range matchers {
		err := matcher.err
		if err == nil && matcher.IsZero() {
			err = errors.New("one of the combined matchers is empty")
		}
		combined.err = errors.Join(combined.err, err)
	}
	return combined
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
	constant.Labels = constantOf(d.Labels)
	constant.Annotations = constantOf(d.Annotations)
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

package document

import "go.yaml.in/yaml/v3"

// Matcher says which values a filter accepts. Exactly one of its fields is set.
type Matcher struct {
	Present bool
	Absent  bool
	Equal   *any
	Not     *Matcher
	AnyOf   []*Matcher
}

// matcherWords are the words of a filter that is a mapping.
var matcherWords = []string{"present", "absent", "equal", "not", "in"}

// matcher returns a filter. A mapping is one with words, everything else is a value to be equal to.
func (r *reader) matcher(n *yaml.Node) *Matcher {
	defer r.leave()
	if !r.enter(n, "the filter") {
		return &Matcher{}
	}
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		value := r.value(n)
		if value == nil {
			r.problem(n, "the filter is empty: for a value that must be absent, write {absent: true}")
		}
		return &Matcher{Equal: &value}
	}
	m := &Matcher{}
	given := 0
	r.each(n, "the filter", func(key, value *yaml.Node) {
		given++
		switch key.Value {
		case "present":
			m.Present = true
			r.onlyTrue(value, key.Value)
		case "absent":
			m.Absent = true
			r.onlyTrue(value, key.Value)
		case "equal":
			equal := r.value(value)
			m.Equal = &equal
		case "not":
			m.Not = r.matcher(value)
		case "in":
			for _, item := range r.list(value, "in") {
				m.AnyOf = append(m.AnyOf, r.matcher(item))
			}
			if len(m.AnyOf) == 0 {
				r.problem(value, "in is empty, so no value could match")
			}
		default:
			r.problem(key, "the filter has an unknown word, %s%s", key.Value, suggest(key.Value, matcherWords, "to compare with a mapping, write {equal: {…}}"))
		}
	})
	if given != 1 {
		r.problem(n, "a filter has exactly one of present, absent, equal, not, and in")
	}
	return m
}

func (r *reader) onlyTrue(n *yaml.Node, what string) {
	if !r.flag(n) {
		r.problem(n, "%s: false says nothing: use {present: true} or {absent: true}", what)
	}
}

// matchers returns filters by their keys.
func (r *reader) matchers(n *yaml.Node, what string) map[string]*Matcher {
	all := map[string]*Matcher{}
	r.each(n, what, func(key, value *yaml.Node) { all[key.Value] = r.matcher(value) })
	return all
}

package selector

import (
	"slices"
	"strings"
)

// Select finds the resources that are meant, in their order. It is Match for
// all of them, and one rule more: when a specific selector fits resources of the
// core group and of others, the core group's are meant. So kubectl does it, and
// so "pods" are not the pods of the metrics server.
func (s Selector) Select(resources []Resource) []Resource {
	selected := filter(resources, s.Match)
	if !s.Specific() {
		return selected
	}
	if core := filter(selected, func(r Resource) bool { return r.Group == "" }); len(core) > 0 {
		return core
	}
	return selected
}

// Resolve finds the resources to serve, as Select does. There are none when a
// specific selector is ambiguous: which one is meant is not for us to guess.
//
// Errors: *AmbiguousError; *NotFoundError.
func (s Selector) Resolve(resources []Resource) ([]Resource, error) {
	selected := s.Select(resources)
	switch {
	case len(selected) == 0:
		return nil, &NotFoundError{Selector: s, Similar: filter(resources, s.resembles)}
	case s.Specific() && len(selected) > 1:
		return nil, &AmbiguousError{Selector: s, Found: selected}
	default:
		return selected, nil
	}
}

// resembles reports whether the developer could have meant the resource: it has
// the name in a different case, in another group, or in another version.
func (s Selector) resembles(r Resource) bool {
	return s.Specific() && slices.ContainsFunc(r.names(), func(name string) bool { return strings.EqualFold(name, s.name) })
}

func filter(resources []Resource, test func(Resource) bool) []Resource {
	var kept []Resource
	for _, r := range resources {
		if test(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

package selector

import (
	"slices"
	"strings"
)

// Select returns the selected resources in their order: those that Match accepts, with one
// exception. If a specific selector matches resources of the core group and of other
// groups, it selects only the core group, as kubectl does, so that "pods" does not mean
// the pods of the metrics server.
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

// Resolve returns the resources to watch, as Select does. If a specific selector is
// ambiguous, it returns none of them.
//
// It returns an *AmbiguousError or a *NotFoundError if there are no resources.
func (s Selector) Resolve(resources []Resource) ([]Resource, error) {
	selected := s.Select(resources)
	switch {
	case len(selected) == 0:
		return nil, &NotFoundError{Selector: s, Similar: filter(resources, s.isSimilar), Near: s.near(resources)}
	case s.Specific() && len(selected) > 1:
		return nil, &AmbiguousError{Selector: s, Found: selected}
	default:
		return selected, nil
	}
}

// isSimilar reports whether the resource may have been meant: it has the name in a
// different case, in another group, or in another version.
func (s Selector) isSimilar(r Resource) bool {
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

package selector

import (
	"cmp"
	"slices"

	"github.com/kopf-go/kopf/internal/similar"
)

// maxNear limits the number of suggestions.
const maxNear = 5

// near returns the resources with a similar name in any group and version, the most similar
// ones first.
func (s Selector) near(resources []Resource) []Resource {
	if !s.Specific() {
		return nil
	}
	limit := similar.Limit(s.name)
	found := filter(resources, func(r Resource) bool { return s.distanceTo(r) <= limit })
	slices.SortStableFunc(found, func(a, b Resource) int { return cmp.Compare(s.distanceTo(a), s.distanceTo(b)) })
	return found[:min(len(found), maxNear)]
}

// distanceTo returns how much the name differs from the most similar name of the resource.
func (s Selector) distanceTo(r Resource) int {
	nearest := len(s.name)
	for _, name := range r.names() {
		nearest = min(nearest, similar.Distance(s.name, name))
	}
	return nearest
}

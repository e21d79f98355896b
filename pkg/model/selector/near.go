package selector

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear limits the number of suggestions.
const maxNear = 5

// near returns the resources with a similar name in any group and version, the most similar
// ones first.
func (s Selector) near(resources []Resource) []Resource {
	if !s.Specific() {
		return nil
	}
	limit := min(max(1, len(s.name)/3), 3) // typing mistakes, but not other words
	similar := filter(resources, func(r Resource) bool { return s.distanceTo(r) <= limit })
	slices.SortStableFunc(similar, func(a, b Resource) int { return cmp.Compare(s.distanceTo(a), s.distanceTo(b)) })
	return similar[:min(len(similar), maxNear)]
}

// distanceTo returns how much the name differs from the most similar name of the resource.
func (s Selector) distanceTo(r Resource) int {
	nearest := len(s.name)
	for _, name := range r.names() {
		nearest = min(nearest, distance(strings.ToLower(s.name), strings.ToLower(name)))
	}
	return nearest
}

// distance returns how many bytes must be inserted, removed, or replaced to turn one word
// into the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // the distances of the beginnings of b to a beginning of a
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal, row[j+1] = row[j+1], min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

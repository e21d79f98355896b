package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/similar"
)

// CheckOrder returns an error if handlers wait for ids that no other handler of changes has, or for each other.
func (h Handlers) CheckOrder() error {
	ordered := h.Where(func(d *handler.Declaration) bool { return d.Kind.IsChange() || d.Kind == handler.Subhandler })
	var ids []string
	var problems []error
	waits := map[string][]string{}
	for _, d := range ordered {
		ids = append(ids, d.ID)
	}
	for _, d := range ordered {
		for _, id := range slices.Concat(d.After, d.AfterFailure) {
			others := ordered.Where(func(other *handler.Declaration) bool { return other.IsCalled(id) })
			joined := others.Where(func(other *handler.Declaration) bool { return other.Kind.TakesPartWith(d.Kind) })
			for _, other := range joined {
				waits[d.ID] = append(waits[d.ID], other.ID)
			}
			if len(joined) > 0 {
				continue
			}
			hint := "no handler of changes has this id"
			if len(others) > 0 {
				hint = fmt.Sprintf("%s is never called for the same change", handler.Describe(others[0]))
			} else if near := similar.Words(id, ids); len(near) > 0 {
				hint += "; did you mean " + strings.Join(near, " or ") + "?"
			}
			problems = appendNew(problems, fmt.Errorf("%s: the handler %q waits for %q: %s", d.DeclaredAt, d.ID, id, hint))
		}
	}
	if circle := circleIn(waits); len(circle) > 0 {
		first := ordered[slices.Index(ids, circle[0])]
		problems = append(problems, fmt.Errorf("%s: the order of the handlers is a circle: %s", first.DeclaredAt, strings.Join(circle, " waits for ")))
	}
	return errors.Join(problems...)
}

// Sequences returns the ids of handlers that follow each other, directly or not.
func (h Handlers) Sequences() [][]string {
	var sequences [][]string
	for _, d := range h {
		if len(d.After)+len(d.AfterFailure) == 0 {
			continue
		}
		joined := []string{d.ID}
		for _, other := range h {
			if slices.ContainsFunc(slices.Concat(d.After, d.AfterFailure), other.IsCalled) {
				joined = append(joined, other.ID)
			}
		}
		sequences = slices.DeleteFunc(sequences, func(known []string) bool {
			isJoined := slices.ContainsFunc(known, func(id string) bool { return slices.Contains(joined, id) })
			if isJoined {
				joined = append(joined, known...)
			}
			return isJoined
		})
		slices.Sort(joined)
		sequences = append(sequences, slices.Compact(joined))
	}
	return sequences
}

// circleIn returns ids of which each waits for the next one, and the last one is the first, or nil if there is no circle.
func circleIn(waits map[string][]string) []string {
	isDone := map[string]bool{}
	var path []string
	var visit func(id string) []string
	visit = func(id string) []string {
		if i := slices.Index(path, id); i >= 0 {
			return append(slices.Clone(path[i:]), id)
		}
		if isDone[id] {
			return nil
		}
		path = append(path, id)
		for _, next := range waits[id] {
			if circle := visit(next); circle != nil {
				return circle
			}
		}
		path = path[:len(path)-1]
		isDone[id] = true
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(waits)) {
		if circle := visit(id); circle != nil {
			return circle
		}
	}
	return nil
}

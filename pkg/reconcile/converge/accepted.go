package converge

import (
	"maps"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// accepted are the fields of a child that are left to others, with the hash of what was wanted
// then: a field is applied again when something else is wanted. They are stored on the child.
type accepted map[string]string

// leaveOut removes the fields from what is wanted, and returns those of which that is still the
// same as before.
func (a accepted) leaveOut(content map[string]any) accepted {
	if len(a) == 0 {
		return nil
	}
	kept := accepted{}
	a.without(content, nil, kept)
	return kept
}

// without returns the value without the fields, or false if nothing is left of it.
func (a accepted) without(value any, at path, kept accepted) (rest any, some bool) {
	parts := elements(value)
	if len(parts) == 0 {
		return value, true
	}
	var list []any
	mapping, isMapping := value.(map[string]any)
	left := 0
	for _, e := range parts {
		below, some := a.below(e.value(value), append(at[:len(at):len(at)], e), kept)
		switch {
		case some && isMapping:
			mapping[e.field] = below
		case some:
			list = append(list, below)
		case isMapping:
			delete(mapping, e.field)
		}
		if some {
			left++
		}
	}
	if isMapping {
		return mapping, left > 0
	}
	return list, left > 0
}

func (a accepted) below(value any, at path, kept accepted) (rest any, some bool) {
	name := at.String()
	if hash, found := a[name]; found && hash == hashOf(value) {
		kept[name] = hash
		return nil, false
	}
	return a.without(value, at, kept)
}

// with returns the fields and those of a drift that a resolution accepts.
func (a accepted) with(r convergence.Resolution, drift []convergence.DriftedField) (all accepted, complete bool) {
	all, complete = accepted{}, true
	maps.Copy(all, a)
	for _, field := range drift {
		if r.Accepts(field.Path) {
			all[field.Path] = hashOf(field.Wanted.Any())
		} else {
			complete = false
		}
	}
	return all, complete
}

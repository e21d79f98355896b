package patch

import (
	"slices"

	"github.com/kopf-go/kopf/pkg/model/diff"
)

// Minimal returns the part of one or more merge patches that changes the body, or nil if
// nothing changes. Several patches are applied one after another.
//
// It differs from RFC 7386 in one point: it does not create a mapping only to remove a
// field from it, so that removing absent fields costs no write. Explicitly requested
// empty mappings are created.
func Minimal(body map[string]any, merges ...map[string]any) map[string]any {
	merges = slices.DeleteFunc(slices.Clone(merges), func(merge map[string]any) bool { return len(merge) == 0 })
	switch len(merges) {
	case 0:
		return nil
	case 1:
		return minimal(body, merges[0]) // without comparing everything else
	}
	wanted := body
	for _, merge := range merges {
		wanted = ApplyMerge(wanted, minimal(wanted, merge))
	}
	return Difference(body, wanted)
}

func minimal(body, merge map[string]any) map[string]any {
	needed := map[string]any{}
	for key, wanted := range merge {
		if change, changes := needs(body[key], wanted); changes {
			needed[key] = change
		}
	}
	return nilIfEmpty(needed)
}

// needs returns the part of a change that a value needs, and reports whether it needs any.
func needs(present, wanted any) (any, bool) {
	mapping, isMapping := wanted.(map[string]any)
	if !isMapping || mapping == nil {
		return wanted, !diff.Equal(present, wanted)
	}
	if inner, ok := present.(map[string]any); ok && inner != nil {
		change := minimal(inner, mapping)
		return change, change != nil
	}
	values, worth := created(mapping, true)
	return values, worth || !absent(present)
}

// created returns the mapping that a merge patch creates in place of an absent one, and
// reports whether it is needed. A mapping that contains only removals is not needed. The
// parameter decides whether an empty mapping is needed.
func created(merge map[string]any, empty bool) (values map[string]any, worth bool) {
	values = map[string]any{}
	for key, value := range merge {
		if mapping, ok := value.(map[string]any); ok && mapping != nil {
			if inner, worth := created(mapping, empty); worth {
				values[key] = inner
			}
		} else if !absent(value) {
			values[key] = value
		}
	}
	return values, len(values) > 0 || empty && len(merge) == 0
}

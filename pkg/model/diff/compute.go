package diff

import (
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Compute lists the differences between two decoded JSON values: usually the
// essence that was handled last and the one now, or one field of both. Where the
// old side has an Opaque, it is asked; its values are never guessed.
//
// The values are neither changed nor copied. Equal values cost no allocation.
func Compute(before, after any, scope Scope) Diff {
	// Nearly always that is all: what follows is for the few states that differ.
	if Equal(before, after) {
		return nil
	}
	c := comparison{scope: scope}
	c.compare(before, after)
	slices.SortFunc(c.items, func(a, b Item) int { return slices.Compare(a.Path, b.Path) })
	return c.items
}

// comparison is the state of one Compute. Mappings are walked in Go's random
// order, and only what was found is sorted: there is less of it.
type comparison struct {
	scope Scope
	items Diff
	path  object.Path // of the field at hand
}

func (c *comparison) compare(before, after any) {
	old, isMapping := before.(map[string]any)
	now, areMappings := after.(map[string]any)
	if isMapping && areMappings && old != nil && now != nil {
		c.compareFields(old, now)
		return
	}
	if !Equal(before, after) {
		c.add(before, after)
	}
}

func (c *comparison) compareFields(old, now map[string]any) {
	for key, before := range old {
		if after, stays := now[key]; stays || c.scope != Right {
			c.compareField(key, before, after)
		}
	}
	if c.scope == Left {
		return
	}
	for key, after := range now {
		if _, compared := old[key]; !compared {
			c.compareField(key, nil, after)
		}
	}
}

func (c *comparison) compareField(key string, before, after any) {
	c.path = append(c.path, key)
	c.compare(before, after)
	c.path = c.path[:len(c.path)-1]
}

func (c *comparison) add(before, after any) {
	item := Item{Op: Change, Path: append(object.Path{}, c.path...), Old: before, New: after}
	if absent(before) {
		item.Op, item.Old = Add, nil
	}
	if absent(after) {
		item.Op, item.New = Remove, nil
	}
	c.items = append(c.items, item)
}

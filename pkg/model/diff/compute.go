package diff

import (
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Compute returns the differences between two decoded JSON values: usually the essence
// that was last handled and the current one, or one field of both. If the old side has
// an Opaque, Compute asks it for equality.
//
// Compute neither changes nor copies the values. Equal values cost no allocations.
func Compute(before, after any, scope Scope) Diff {
	// The fast path: most states do not differ.
	if Equal(before, after) {
		return nil
	}
	c := comparison{scope: scope}
	c.compare(before, after)
	slices.SortFunc(c.items, func(a, b Item) int { return slices.Compare(a.Path, b.Path) })
	return c.items
}

// comparison is the state of one Compute. It walks mappings in Go's random order, and
// sorts only the differences.
type comparison struct {
	scope Scope
	items Diff
	path  object.Path // of the current field
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
		item.Op = Add
		item.Old = nil
	}
	if absent(after) {
		item.Op = Remove
		item.New = nil
	}
	c.items = append(c.items, item)
}

package storage

import (
	"maps"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Without returns the essence without the fields, and without the mappings that
// are empty afterwards. The essence is read only: it is returned itself if it
// has none of the fields, and otherwise a copy of those mappings that differ.
func Without(essence object.Essence, fields ...object.Path) object.Essence {
	for _, field := range fields {
		if len(field) > 0 {
			essence, _ = without(essence, field)
		}
	}
	return essence
}

// without also drops a mapping on the way that is empty already, as if the field
// had been the last one in it: an ignored field must not show by its container.
func without(mapping map[string]any, path object.Path) (map[string]any, bool) {
	value, ok := mapping[path[0]]
	if !ok {
		return mapping, false
	}
	if len(path) > 1 {
		inner, isMapping := value.(map[string]any)
		if !isMapping {
			return mapping, false
		}
		left, changed := without(inner, path[1:])
		switch {
		case len(left) > 0 && !changed:
			return mapping, false
		case len(left) > 0:
			return with(mapping, path[:1], left), true
		}
	}
	left := maps.Clone(mapping)
	delete(left, path[0])
	return left, true
}

// with returns a mapping that has the value at the path, and shares everything
// beside the path with the given one.
func with(mapping map[string]any, path object.Path, value any) map[string]any {
	changed := make(map[string]any, len(mapping)+1)
	maps.Copy(changed, mapping)
	if len(path) > 1 {
		inner, _ := mapping[path[0]].(map[string]any)
		value = with(inner, path[1:], value)
	}
	changed[path[0]] = value
	return changed
}

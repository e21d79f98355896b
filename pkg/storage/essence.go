package storage

import (
	"maps"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/annotation"
)

// BuildEssence returns the essence of a body: all fields except apiVersion, kind, status, and
// metadata. From the metadata, it keeps the labels and the annotations that belong neither to
// kubectl nor to an operator. It adds the extra fields, even those that would be left out
// otherwise. An empty path is ignored.
//
// It is the common part of all implementations of DiffBase.Build. The essence is
// read-only, because it shares its parts with the body.
//
// Specification: Configuration, "Change detection".
func BuildEssence(body *object.Body, extra []object.Path) object.Essence {
	raw := body.Raw()
	essence := make(object.Essence, len(raw))
	for key, value := range raw {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			essence[key] = value
		}
	}

	// The metadata that people set.
	metadata, _ := raw["metadata"].(map[string]any)
	tracked := make(map[string]any, 2)
	if labels, _ := metadata["labels"].(map[string]any); len(labels) > 0 {
		tracked["labels"] = labels
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	annotations = annotation.WithoutOperators(annotations)
	if len(annotations) > 0 {
		tracked["annotations"] = annotations
	}
	if len(tracked) > 0 {
		essence["metadata"] = tracked
	}

	// The extra fields, even if they are null. Only the top level of the essence may change,
	// because the levels below may belong to the body.
	for _, field := range extra {
		value, ok := find(raw, field)
		switch {
		case !ok || len(field) == 0:
		case len(field) == 1:
			essence[field[0]] = value
		default:
			inner, _ := essence[field[0]].(map[string]any)
			essence[field[0]] = with(inner, field[1:], value)
		}
	}

	// Depending on the last writer, the cluster stores empty stanzas or not, so they must not count
	// as changes.
	for _, stanza := range []object.Path{{"metadata", "annotations"}, {"metadata", "labels"}, {"metadata"}, {"status"}} {
		if value, ok := find(essence, stanza); ok && isEmpty(value) {
			essence = Without(essence, stanza)
		}
	}
	return essence
}

// find distinguishes a null from an absent field, unlike object.Lookup: the essence
// must equal the essence of other operators, including nulls.
func find(value any, path object.Path) (any, bool) {
	for _, key := range path {
		mapping, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		value, ok = mapping[key]
		if !ok {
			return nil, false
		}
	}
	return value, true
}

func isEmpty(value any) bool {
	mapping, isMapping := value.(map[string]any)
	return value == nil || isMapping && len(mapping) == 0
}

// Without returns the essence without the fields, and without the mappings that
// become empty. It does not modify the essence: it returns the same essence if it has
// none of the fields, and otherwise copies the mappings that differ.
func Without(essence object.Essence, fields ...object.Path) object.Essence {
	for _, field := range fields {
		if len(field) > 0 {
			essence, _ = without(essence, field)
		}
	}
	return essence
}

// without also drops a parent mapping that was already empty, as if the field had
// been its last one: its presence must not reveal an ignored field.
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

// with returns a copy of the mapping that has the value at the path. It shares
// everything outside the path with the given mapping.
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

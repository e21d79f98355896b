package patch

import (
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// change is one call of Set, Remove, or Merge.
type change struct {
	path  object.Path // of a field; nil if the value is a merge patch of the object
	value any         // nil removes the field
	err   error       // why the value is missing
}

// newChange copies the value, so that the handler can continue to use it.
func newChange(path object.Path, value any) change {
	normal, err := object.Normalize(value)
	if err != nil {
		err = unsupportedValue(path, value, err)
	}
	return change{path: path, value: normal, err: err}
}

// unsupportedValue returns an error for the innermost field that cannot be expressed as JSON.
func unsupportedValue(path object.Path, value any, err error) error {
	fields, _ := value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if _, err := object.Normalize(fields[key]); err != nil {
			return unsupportedValue(append(slices.Clip(path), key), fields[key], err)
		}
	}
	return &FieldError{Field: path, Err: err}
}

// applied returns the body with the change.
func (c change) applied(body map[string]any, worth func(body, merge map[string]any) map[string]any) map[string]any {
	if c.path != nil {
		return with(body, c.path, c.value)
	}
	values, _ := c.value.(map[string]any)
	return ApplyMerge(body, worth(body, values))
}

// with returns the body with one field replaced, or removed if the value is nil. Removing
// a field neither creates nor replaces the mappings above it.
func with(body map[string]any, path object.Path, value any) map[string]any {
	key := path[0]
	if len(path) > 1 {
		inner, _ := body[key].(map[string]any)
		if inner == nil && absent(value) {
			return body
		}
		value = with(inner, path[1:], value)
	}
	replaced := make(map[string]any, len(body)+1)
	maps.Copy(replaced, body)
	replaced[key] = value
	if absent(value) {
		delete(replaced, key) // transformations expect no nulls
	}
	return replaced
}

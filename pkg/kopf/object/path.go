package object

import (
	"fmt"
	"strings"
)

// Path names a field of an object, from the outside in: {"spec", "size"}.
// The empty path is the whole object. A path leads through mappings only;
// lists are values as a whole.
type Path []string

// ParsePath reads the dotted notation: "spec.size". A key that itself has dots
// ("metadata.labels.example.com/role") cannot be written so; use a Path literal
// for it. An empty string, and an empty part between two dots, are errors.
func ParsePath(dotted string) (Path, error) {
	parts := strings.Split(dotted, ".")
	for _, part := range parts {
		if part == "" {
			return nil, fmt.Errorf("field %q has an empty part: write it as %q", dotted, "spec.field")
		}
	}
	return parts, nil
}

// String is the dotted notation, as handler ids and messages show it.
func (p Path) String() string { return strings.Join(p, ".") }

// HasPrefix tells whether the path is the other one or lies inside it.
func (p Path) HasPrefix(prefix Path) bool {
	if len(p) < len(prefix) {
		return false
	}
	for i := range prefix {
		if p[i] != prefix[i] {
			return false
		}
	}
	return true
}

// Lookup finds the value at the path inside a decoded JSON value. As everywhere
// in Kubernetes, a null is the absence of a value; so is a path that leads
// through something that is not a mapping. Inside of an Opaque every field is
// there, and opaque. The value is not a copy.
func Lookup(value any, path Path) (any, bool) {
	for _, key := range path {
		switch container := value.(type) {
		case map[string]any:
			value = container[key]
		case Opaque:
			return unknown{}, true
		default:
			return nil, false
		}
	}
	return value, value != nil
}

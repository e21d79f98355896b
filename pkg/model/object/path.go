package object

import (
	"fmt"
	"slices"
	"strings"
)

// Path names a field of an object, from the outside in: {"spec", "size"}.
// The empty path is the whole object. A path leads through mappings only;
// lists are values as a whole.
type Path []string

// ParsePath reads the dotted notation, "spec.size", or a JSON pointer (RFC 6901)
// if the text begins with a slash: "/metadata/labels/example.com~1role" names a
// key that has dots itself. Empty parts are errors.
func ParsePath(text string) (Path, error) {
	if strings.HasPrefix(text, "/") {
		return parsePointer(text)
	}
	parts := strings.Split(text, ".")
	if slices.Contains(parts, "") {
		return nil, fmt.Errorf("field %q has an empty part: write it as %q", text, "spec.field")
	}
	if strings.Contains(text, "/") {
		return nil, fmt.Errorf("field %q has a slash, so its last key has dots, which do not separate: write it as a JSON pointer, such as %q",
			text, "/metadata/labels/example.com~1role")
	}
	return parts, nil
}

func parsePointer(text string) (Path, error) {
	parts := strings.Split(text[1:], "/")
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, part := range parts {
		if part == "" {
			return nil, fmt.Errorf("field %q has an empty part: write it as %q", text, "/spec/field")
		}
		parts[i] = unescape.Replace(part)
	}
	return parts, nil
}

// String is the dotted notation, as handler ids and messages show it.
func (p Path) String() string { return strings.Join(p, ".") }

// HasPrefix reports whether the path is the other one or lies inside it.
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

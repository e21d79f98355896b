package object

import (
	"fmt"
	"slices"
	"strings"
)

// Path names a field of an object, from the outermost key to the innermost: {"spec",
// "size"}. The empty path is the entire object. A path leads only through mappings, not
// through lists.
type Path []string

// PathOf returns the path of a field, which is named by one text or by its keys: "spec.size",
// "/metadata/labels/example.com~1role", or "metadata", "labels", "example.com/role". One text is as for
// ParsePath; several are the keys as they are. This holds wherever a field is named: for views, patches,
// and filters. None is the entire object.
func PathOf(field ...string) (Path, error) {
	if len(field) == 1 {
		return ParsePath(field[0])
	}
	if slices.Contains(field, "") {
		return nil, fmt.Errorf("the field %q has an empty part", field)
	}
	if len(field) > 1 && strings.Contains(field[0], ".") {
		return nil, fmt.Errorf("the field %q mixes keys and dots: write all of its keys, %q, or one text, %q",
			field, append(strings.Split(field[0], "."), field[1:]...), strings.Join(field, "."))
	}
	return slices.Clone(field), nil
}

// ParsePath parses the dotted notation, "spec.size". If the text begins with a slash, it
// is a JSON pointer (RFC 6901): "/metadata/labels/example.com~1role" names a key that
// contains dots. Empty parts result in an error.
func ParsePath(text string) (Path, error) {
	if strings.HasPrefix(text, "/") {
		return parsePointer(text)
	}
	parts := strings.Split(text, ".")
	if slices.Contains(parts, "") {
		return nil, fmt.Errorf("field %q has an empty part: write it as %q", text, "spec.field")
	}
	if strings.Contains(text, "/") {
		return nil, fmt.Errorf("field %q has a slash, so the dots of its last key cannot be separators: write it as a JSON pointer, such as %q",
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

// String returns the dotted notation, as in handler ids and messages.
func (p Path) String() string { return strings.Join(p, ".") }

// HasPrefix reports whether the path equals the prefix or lies inside it.
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

// Lookup returns the field at the path inside a decoded JSON value. As everywhere in
// Kubernetes, a null counts as absent. So does a path that leads through a value that is
// not a mapping. Every field inside an Opaque exists, and is opaque. The value is not a
// copy.
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

package object

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// View is a read-only view of a mapping inside a body: the entire object, its spec, or any
// other mapping. The zero View is an empty mapping, so a chain of views never fails:
// c.Spec().View("template").String("name").
//
// All accessors take a field as one text, "template.spec", or as its keys, from the outermost to the
// innermost, if they contain dots: see PathOf. One text that is a key of the mapping is that key:
// Meta().View("annotations").String("example.com/role"). The accessors report whether the field exists
// and has the requested type. Lists and mappings are copies. If only the hash of a field
// is stored, the field exists but has none of the types; copies contain an Opaque in its
// place.
type View struct{ fields map[string]any }

// NewView returns a view of a decoded mapping. Do not modify the mapping afterwards.
func NewView(fields map[string]any) View { return View{fields} }

func get[T any](v View, fields []string) (T, bool) {
	typed, ok := v.at(fields).value.(T)
	return typed, ok
}

// at returns the value of the field without a copy.
func (v View) at(fields []string) Value {
	value, _ := Lookup(v.fields, v.path(fields))
	return Value{value}
}

// path returns the path of a field. A mistake is a path that does not exist.
func (v View) path(fields []string) Path {
	if len(fields) != 1 || v.fields[fields[0]] != nil || !strings.ContainsAny(fields[0], "./") {
		return fields
	}
	if path, err := ParsePath(fields[0]); err == nil {
		return path
	}
	return fields
}

// String returns a string field.
func (v View) String(fields ...string) (string, bool) { return get[string](v, fields) }

// Bool returns a boolean field.
func (v View) Bool(fields ...string) (bool, bool) { return get[bool](v, fields) }

// Int64 returns a whole number: 1 and 1.0, but not 1.5.
func (v View) Int64(fields ...string) (int64, bool) { return v.at(fields).Int64() }

// Float64 returns any number.
func (v View) Float64(fields ...string) (float64, bool) { return v.at(fields).Float64() }

// Strings returns a list that contains only strings.
func (v View) Strings(fields ...string) ([]string, bool) { return v.at(fields).Strings() }

// StringMap returns a mapping of strings, such as labels. It skips values that are not
// strings, and never returns nil.
func (v View) StringMap(fields ...string) map[string]string {
	mapping, _ := get[map[string]any](v, fields)
	texts := make(map[string]string, len(mapping))
	for key, value := range mapping {
		if text, ok := value.(string); ok {
			texts[key] = text
		}
	}
	return texts
}

// List returns a list of any values.
func (v View) List(fields ...string) ([]any, bool) {
	list, ok := get[[]any](v, fields)
	if !ok {
		return nil, false
	}
	return copyList(list), true
}

// Value returns a field of any type.
func (v View) Value(fields ...string) (any, bool) {
	value := v.at(fields)
	return Copy(value.value), value.Exists()
}

// View returns a view of a mapping, which is empty if there is none.
func (v View) View(fields ...string) View {
	mapping, _ := get[map[string]any](v, fields)
	return View{mapping}
}

// Has reports whether the field exists and is not null.
func (v View) Has(fields ...string) bool { return v.at(fields).Exists() }

// Keys returns the sorted keys of the mapping.
func (v View) Keys() []string { return slices.Sorted(maps.Keys(v.fields)) }

// Len returns the number of keys.
func (v View) Len() int { return len(v.fields) }

// Map returns a copy of the mapping, which is never nil.
func (v View) Map() map[string]any {
	if v.fields == nil {
		return map[string]any{}
	}
	return copyMap(v.fields)
}

// Decode decodes the mapping, or a field in it, into a typed value, like json.Unmarshal:
// c.Spec().Decode(&spec). It leaves the value unchanged if the field is absent, and
// returns an error if any part of the field is unknown.
func (v View) Decode(into any, fields ...string) error {
	what := "the mapping"
	if len(fields) > 0 {
		what = fmt.Sprintf("the field %q", v.path(fields))
	}
	return v.at(fields).decode(into, what)
}

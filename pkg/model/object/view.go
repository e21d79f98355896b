package object

import (
	"fmt"
	"maps"
	"slices"
)

// View is a read-only mapping inside a body: the whole object, its spec, or any
// mapping in it. The zero View is an empty mapping, so that a chain of views
// never fails: c.Spec().View("template").String("name").
//
// Every accessor takes the field as separate keys, from the outside in, as
// unstructured.NestedString does; keys may have dots. It reports whether the
// field is there and has the asked type. Lists and mappings are copies. A field
// of which only a hash was kept is there, but has none of the types; in copies an
// Opaque stands for it.
type View struct{ fields map[string]any }

// NewView makes a view of a decoded mapping; nobody may change it afterwards.
func NewView(fields map[string]any) View { return View{fields} }

func get[T any](v View, fields []string) (T, bool) {
	value, _ := Lookup(v.fields, fields)
	typed, ok := value.(T)
	return typed, ok
}

// String reads a string.
func (v View) String(fields ...string) (string, bool) { return get[string](v, fields) }

// Bool reads a boolean.
func (v View) Bool(fields ...string) (bool, bool) { return get[bool](v, fields) }

// Int64 reads a whole number: 1, and 1.0, but not 1.5.
func (v View) Int64(fields ...string) (int64, bool) {
	value, _ := Lookup(v.fields, fields)
	n, _ := toNumber(value)
	return n.whole, n.isWhole
}

// Float64 reads any number.
func (v View) Float64(fields ...string) (float64, bool) {
	value, _ := Lookup(v.fields, fields)
	n, ok := toNumber(value)
	if n.isWhole {
		return float64(n.whole), true
	}
	return n.float, ok
}

// Strings reads a list in which every item is a string.
func (v View) Strings(fields ...string) ([]string, bool) {
	items, ok := get[[]any](v, fields)
	list := make([]string, 0, len(items))
	for _, item := range items {
		text, isText := item.(string)
		if !isText {
			return nil, false
		}
		list = append(list, text)
	}
	return list, ok
}

// StringMap reads a mapping of strings such as labels; what is not a string is
// left out. Never nil.
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

// List reads a list of anything.
func (v View) List(fields ...string) ([]any, bool) {
	list, ok := get[[]any](v, fields)
	if !ok {
		return nil, false
	}
	return copyList(list), true
}

// Value reads a field of any type.
func (v View) Value(fields ...string) (any, bool) {
	value, ok := Lookup(v.fields, fields)
	return Copy(value), ok
}

// View reads a mapping; empty if there is none.
func (v View) View(fields ...string) View {
	mapping, _ := get[map[string]any](v, fields)
	return View{mapping}
}

// Has reports whether the field is there, with any value but null.
func (v View) Has(fields ...string) bool { _, ok := Lookup(v.fields, fields); return ok }

// Keys are the keys of the mapping, sorted.
func (v View) Keys() []string { return slices.Sorted(maps.Keys(v.fields)) }

// Len is the number of the mapping's keys.
func (v View) Len() int { return len(v.fields) }

// Map is the whole mapping, copied; never nil.
func (v View) Map() map[string]any {
	if v.fields == nil {
		return map[string]any{}
	}
	return copyMap(v.fields)
}

// Decode writes the mapping, or the field in it, into a typed value, as
// json.Unmarshal does: c.Spec().Decode(&spec). An absent field leaves it as it is;
// one that is not known, or not in all of its parts, is an error.
func (v View) Decode(into any, fields ...string) error {
	value, _ := Lookup(v.fields, fields)
	what := "the mapping"
	if len(fields) > 0 {
		what = fmt.Sprintf("the field %q", Path(fields))
	}
	return NewValue(value).decode(into, what)
}

package knownfields

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// OfType returns the fields that the Go type of an object has in JSON. The sample is a pointer to it.
func OfType(sample any) Fields { return goType{reflect.TypeOf(sample)} }

// goType is a Go type. It knows the fields of structs whose fields all have names in their tags.
type goType struct{ of reflect.Type }

func (t goType) field(name string) (Fields, bool) {
	of := t.value()
	switch {
	case isCoded(of) || of.Kind() == reflect.Interface:
		return nil, true
	case of.Kind() == reflect.Map:
		return goType{of.Elem()}, false
	case of.Kind() == reflect.Struct:
		fields, certain := fieldsOf(of)
		if below, ok := fields[name]; ok {
			return goType{below}, false
		}
		return nil, !certain
	default:
		return nil, false
	}
}

func (t goType) names() []string {
	of := t.value()
	if isCoded(of) || of.Kind() != reflect.Struct {
		return nil
	}
	fields, _ := fieldsOf(of)
	return slices.Collect(maps.Keys(fields))
}

// value returns the type behind the pointers.
func (t goType) value() reflect.Type {
	of := t.of
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of
}

// isCoded reports whether code decides about the JSON of a type.
func isCoded(of reflect.Type) bool {
	pointer := reflect.PointerTo(of)
	return pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// fieldsOf returns the types of the fields of a struct by their names in JSON, with those of embedded structs. It
// is not certain that there are no others if a field has no name in its tag, because decoders differ there.
func fieldsOf(of reflect.Type, above ...reflect.Type) (fields map[string]reflect.Type, certain bool) {
	fields = map[string]reflect.Type{}
	certain = true
	above = append(above, of)
	for i := range of.NumField() {
		field := of.Field(i)
		tag, tagged := field.Tag.Lookup("json")
		name, _, _ := strings.Cut(tag, ",")
		embedded := goType{field.Type}.value()
		switch {
		case tag == "-":
		case name != "":
			fields[name] = field.Type
		case field.Anonymous && embedded.Kind() == reflect.Struct && !isCoded(embedded) && !slices.Contains(above, embedded):
			inner, innerCertain := fieldsOf(embedded, above...)
			for name, typed := range inner {
				if _, hidden := fields[name]; !hidden {
					fields[name] = typed
				}
			}
			certain = certain && innerCertain
		case field.Anonymous || field.IsExported() || tagged:
			certain = false
		}
	}
	return fields, certain
}

package hierarchy

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// nestedInStruct finds an object inside of a Go struct by the JSON names of its
// fields, and changes it in place: nothing is converted, so nothing gets lost.
func nestedInStruct(obj any, path object.Path) (child, error) {
	v := reflect.ValueOf(obj)
	for _, key := range path {
		v = fieldByName(deref(v), key)
	}
	v = deref(v)
	if !v.IsValid() {
		return nil, nil
	}
	if inner, ok := v.Interface().(map[string]any); ok {
		return newMapping(inner)
	}
	if v.CanAddr() {
		if inner, ok := v.Addr().Interface().(metav1.Object); ok {
			return typed{inner}, nil
		}
	}
	// Resources of others embed a metadata type of their own that has little but labels.
	labels := fieldByName(deref(fieldByName(v, "metadata")), "labels")
	if labels.IsValid() && labels.CanSet() && labels.Type() == reflect.TypeFor[map[string]string]() {
		return labelField{path, labels}, nil
	}
	return nil, fmt.Errorf("its field %s, a %s, has no metadata with labels that can be set", path, v.Type())
}

// deref follows pointers and interfaces; the result is invalid for a nil one.
func deref(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// fieldByName finds the field or the item that JSON knows by that name; the
// result is invalid if there is none.
func fieldByName(v reflect.Value, name string) reflect.Value {
	switch v.Kind() {
	case reflect.Struct:
		return structField(v, name)
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			return v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key()))
		}
	}
	return reflect.Value{}
}

func structField(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported() && !field.Anonymous:
		case tag == name, tag == "" && !field.Anonymous && field.Name == name:
			return v.Field(i)
		case tag == "" && field.Anonymous:
			if inlined := fieldByName(deref(v.Field(i)), name); inlined.IsValid() {
				return inlined
			}
		}
	}
	return reflect.Value{}
}

// labelField is a nested object of which only the labels are known.
type labelField struct {
	path   object.Path
	labels reflect.Value
}

func (f labelField) read() (metadata, error) {
	return metadata{Labels: f.labels.Interface().(map[string]string)}, nil //nolint:errcheck // the field was found by this type
}

func (f labelField) write(before, after metadata) {
	if !maps.Equal(before.Labels, after.Labels) {
		f.labels.Set(reflect.ValueOf(after.Labels))
	}
}

func (f labelField) nested(object.Path) (child, error) { return nil, nil }
func (f labelField) String() string                    { return "field " + f.path.String() }

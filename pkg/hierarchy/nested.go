package hierarchy

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// nestedTarget finds an object inside another one, and changes it in place: nothing
// is converted, so nothing gets lost. It returns nil if there is no such field.
func nestedTarget(outer any, path object.Path) (*target, error) {
	v := fieldAt(outer, path)
	if !v.IsValid() {
		return nil, nil
	}
	inner := v.Interface()
	if v.CanAddr() {
		inner = v.Addr().Interface()
	}
	if mapping, ok := v.Interface().(map[string]any); ok {
		inner = mapping
	} else if _, err := meta.Accessor(inner); err != nil {
		return labelsTarget(v, path)
	}
	nested, err := newTarget(inner)
	if err != nil {
		return nil, fmt.Errorf("field %s: %w", path, err)
	}
	return nested, nil
}

// labelsTarget changes a nested object whose labels are its only known field: some
// resources embed their own metadata types, which have few other fields.
func labelsTarget(v reflect.Value, path object.Path) (*target, error) {
	labels := fieldNamed(deref(fieldNamed(v, "metadata")), "labels")
	if !labels.CanSet() || labels.Type() != reflect.TypeFor[map[string]string]() {
		return nil, fmt.Errorf("its field %s must be a mapping or a struct with metadata.labels, not %s", path, v.Type())
	}
	before, _ := labels.Interface().(map[string]string)
	return &target{after: metav1.ObjectMeta{Labels: before}, write: func(after metav1.ObjectMeta) {
		if !maps.Equal(before, after.Labels) {
			labels.Set(reflect.ValueOf(after.Labels))
		}
	}}, nil
}

// fieldAt follows the path through structs, by the JSON names of their fields,
// and through maps. The result is invalid if there is no such field, or a nil.
func fieldAt(outer any, path object.Path) reflect.Value {
	if u, ok := outer.(*unstructured.Unstructured); ok {
		outer = u.Object
	}
	v := deref(reflect.ValueOf(outer))
	for _, key := range path {
		v = deref(fieldNamed(v, key))
	}
	if v.Kind() == reflect.Map && v.IsNil() {
		return reflect.Value{}
	}
	return v
}

// deref follows pointers and interfaces; the result is invalid for a nil one.
func deref(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

func fieldNamed(v reflect.Value, name string) reflect.Value {
	switch {
	case v.Kind() == reflect.Struct:
		return structField(v, name)
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		return v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key()))
	}
	return reflect.Value{}
}

func structField(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case tag == "" && field.Anonymous:
			if inlined := fieldNamed(deref(v.Field(i)), name); inlined.IsValid() {
				return inlined
			}
		case field.IsExported() && (tag == name || tag == "" && field.Name == name):
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

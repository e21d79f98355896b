package resource

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// ObjectToTyped returns the object with the first type that is known.
func (t typesOf) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	value, err := t[0].ObjectToTyped(object, options...)
	if err != nil {
		return t[1].ObjectToTyped(object, options...)
	}
	return value, nil
}

// TypedToObject returns the object.
func (t typesOf) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return t[0].TypedToObject(value)
}

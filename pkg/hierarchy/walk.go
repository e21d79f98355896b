package hierarchy

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// each visits the object, or every object of the list. Errors name the place in
// the list. What is neither an object nor a list is visited too: the visitor
// knows best what it cannot use.
func each(objs any, visit func(obj any) error) error {
	switch {
	case isNil(objs):
		return errors.New("an object: it is nil")
	case isList(objs):
		return eachItem(objs.(runtime.Object), visit) //nolint:errcheck // IsListType says so
	}
	if v := reflect.ValueOf(objs); v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		return eachElement(v, visit)
	}
	return visit(objs)
}

func eachItem(list runtime.Object, visit func(obj any) error) error {
	i := 0
	return meta.EachListItem(list, func(item runtime.Object) error {
		err := within(i, each(item, visit))
		i++
		return err
	})
}

func eachElement(list reflect.Value, visit func(obj any) error) error {
	for i := range list.Len() {
		element := list.Index(i)
		if element.Kind() == reflect.Struct && element.CanAddr() {
			element = element.Addr() // []corev1.Pod: work on the element, not on a copy
		}
		if err := within(i, each(element.Interface(), visit)); err != nil {
			return err
		}
	}
	return nil
}

// isList tells whether the object is a list as the API knows it. A typed object
// may have a field "items" of its own; the one without metadata is the list.
func isList(obj any) bool {
	list, ok := obj.(runtime.Object)
	if !ok {
		return false
	}
	_, isUnstructured := obj.(runtime.Unstructured)
	_, isObject := obj.(metav1.Object)
	return (isUnstructured || !isObject) && meta.IsListType(list)
}

func isNil(obj any) bool {
	v := reflect.ValueOf(obj)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map:
		return v.IsNil()
	default:
		return false
	}
}

// placeError puts the place in a list before an error; lists of lists give one place.
type placeError struct {
	place string
	err   error
}

func (e *placeError) Error() string { return "objects" + e.place + ": " + e.err.Error() }
func (e *placeError) Unwrap() error { return e.err }

func within(i int, err error) error {
	if err == nil {
		return nil
	}
	place := fmt.Sprintf("[%d]", i)
	if inner, ok := err.(*placeError); ok { //nolint:errorlint // only the outermost one is a place in a sub-list
		return &placeError{place + inner.place, inner.err}
	}
	return &placeError{place, err}
}

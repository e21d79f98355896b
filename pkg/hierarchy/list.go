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
// the list, as in "objects[1]"; the place of the outermost list is empty. What is
// neither an object nor a list is visited too: the visitor rejects it.
func each(place string, objs any, visit func(obj any) error) error {
	v := reflect.ValueOf(objs)
	index := 0
	visitItem := func(item any) error {
		index++
		return each(fmt.Sprintf("%s[%d]", place, index-1), item, visit)
	}
	switch {
	case isNil(objs):
		return at(place, errors.New("an object: it is nil"))
	case isList(objs):
		list, _ := objs.(runtime.Object)
		return meta.EachListItem(list, func(item runtime.Object) error { return visitItem(item) })
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		for _, item := range v.Seq2() {
			if item.Kind() == reflect.Struct && item.CanAddr() {
				item = item.Addr() // []corev1.Pod: work on the item, not on a copy
			}
			if err := visitItem(item.Interface()); err != nil {
				return err
			}
		}
		return nil
	default:
		return at(place, visit(objs))
	}
}

func at(place string, err error) error {
	if err == nil || place == "" {
		return err
	}
	return fmt.Errorf("objects%s: %w", place, err)
}

// isList reports whether the object is a list as the API knows it. A typed object
// may have a field "items" as well; the one without metadata is the list.
func isList(obj any) bool {
	list, ok := obj.(runtime.Object)
	_, isUnstructured := obj.(runtime.Unstructured)
	_, isObject := obj.(metav1.Object)
	return ok && (isUnstructured || !isObject) && meta.IsListType(list)
}

func isNil(obj any) bool {
	switch v := reflect.ValueOf(obj); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map:
		return v.IsNil()
	default:
		return false
	}
}

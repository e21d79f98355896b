package metacontroller

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	modelobject "github.com/kopf-go/kopf/pkg/model/object"
)

// lastApplied is the annotation with what a hook has returned for a child, the last time it was written.
const lastApplied = "metacontroller.k8s.io/last-applied-configuration"

// marked returns a copy of a child as a hook returns it, with the annotation that has all of it.
func marked(wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	child := wanted.DeepCopy()
	withoutAnnotation(child, lastApplied)
	text, err := json.Marshal(child.Object)
	if err != nil {
		return nil, fmt.Errorf("the child cannot be encoded: %w", err)
	}
	setAnnotation(child, lastApplied, string(text))
	return child, nil
}

// updated returns an existing child with what has changed since a hook has returned it for the last time, and whether that
// changes it. What the hook does not return, and what it has not returned before, stays.
func updated(existing, wanted *unstructured.Unstructured) (child *unstructured.Unstructured, changed bool, err error) {
	var before map[string]any
	if text := existing.GetAnnotations()[lastApplied]; text != "" {
		if err := utiljson.Unmarshal([]byte(text), &before); err != nil {
			return nil, false, fmt.Errorf("the annotation %s of the child cannot be decoded: %w", lastApplied, err)
		}
	}
	wanted = wanted.DeepCopy()
	withoutAnnotation(wanted, lastApplied)
	text, err := json.Marshal(wanted.Object)
	if err != nil {
		return nil, false, fmt.Errorf("the child cannot be encoded: %w", err)
	}
	child = existing.DeepCopy()
	merge(child.Object, before, wanted.Object)
	keep(child.Object, existing.Object, "status")
	metadata, _ := child.Object["metadata"].(map[string]any)
	kept, _ := existing.Object["metadata"].(map[string]any)
	for _, field := range systemFields() {
		keep(metadata, kept, field)
	}
	setAnnotation(child, lastApplied, string(text))
	return child, !modelobject.Equal(existing.Object, child.Object), nil
}

// systemFields are the fields of metadata that only the API server sets.
func systemFields() []string {
	return []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"}
}

// keep takes back what was done to a field.
func keep(in, as map[string]any, field string) {
	value, exists := as[field]
	if exists {
		in[field] = runtime.DeepCopyJSONValue(value)
	} else {
		delete(in, field)
	}
}

func setAnnotation(obj *unstructured.Unstructured, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

func withoutAnnotation(obj *unstructured.Unstructured, key string) {
	annotations := obj.GetAnnotations()
	if _, exists := annotations[key]; exists {
		delete(annotations, key)
		obj.SetAnnotations(annotations)
	}
}

// merge changes the fields of a mapping to those that are wanted, and removes those that were wanted before.
func merge(is, was, wanted map[string]any) {
	for key := range was {
		if _, exists := wanted[key]; !exists {
			delete(is, key)
		}
	}
	for key, value := range wanted {
		if result := merged(is[key], was[key], value); result == nil {
			delete(is, key)
		} else {
			is[key] = result
		}
	}
}

// merged returns a value with what is wanted.
func merged(is, was, wanted any) any {
	switch is := is.(type) {
	case map[string]any:
		if wanted, isMapping := wanted.(map[string]any); isMapping {
			was, _ := was.(map[string]any)
			merge(is, was, wanted)
			return is
		}
	case []any:
		if wanted, isList := wanted.([]any); isList {
			was, _ := was.([]any)
			return mergedList(is, was, wanted)
		}
	}
	return wanted
}

// mergeKeys are the fields that identify the items of a list, the most important one first.
func mergeKeys() []string {
	return []string{"containerPort", "port", "mountPath", "name", "uid", "ip", "path"}
}

// mergedList merges the items that have the same value in a field that identifies them. Other lists are replaced.
func mergedList(is, was, wanted []any) []any {
	for _, key := range mergeKeys() {
		isByKey, ok1 := byKey(is, key)
		wasByKey, ok2 := byKey(was, key)
		wantedByKey, ok3 := byKey(wanted, key)
		if !ok1 || !ok2 || !ok3 || len(is)+len(was)+len(wanted) == 0 {
			continue
		}
		merge(isByKey, wasByKey, wantedByKey)
		all := []any{}
		for _, list := range [][]any{is, wanted} { // those that exist keep their order
			for _, item := range list {
				id := identify(item, key)
				if value, exists := isByKey[id]; exists {
					all = append(all, value)
					delete(isByKey, id)
				}
			}
		}
		return all
	}
	return wanted
}

// byKey returns the items of a list by the value of a field. All items must be mappings with different values of it.
func byKey(list []any, key string) (items map[string]any, ok bool) {
	items = map[string]any{}
	for _, item := range list {
		id := identify(item, key)
		if _, twice := items[id]; twice || id == "" {
			return nil, false
		}
		items[id] = item
	}
	return items, true
}

// identify returns the value of a field as a text, or nothing if the item is no mapping with the field.
func identify(item any, key string) string {
	mapping, _ := item.(map[string]any)
	value, exists := mapping[key]
	if !exists {
		return ""
	}
	return fmt.Sprint(value)
}

package apiserver

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
)

// The owners of the fields are the largest part of most objects, and the server itself has written
// them. What a request leaves as it is stored need not be checked again.

// shareOwners lets an object share the field owners of the stored one, if they are the same.
func shareOwners(updated, stored *unstructured.Unstructured) {
	given := resource.OwnersOf(updated)
	known := resource.OwnersOf(stored)
	metadata, _ := updated.Object["metadata"].(map[string]any)
	if len(known) > 0 && reflect.DeepEqual(given, known) {
		metadata["managedFields"] = known
	}
}

// detachOwners removes the field owners of an object if they are those of the stored one, and
// returns a function that adds them again.
func detachOwners(updated, stored *unstructured.Unstructured) (restore func()) {
	metadata, _ := updated.Object["metadata"].(map[string]any)
	if stored == nil || metadata == nil {
		return func() {}
	}
	given := resource.OwnersOf(updated)
	known := resource.OwnersOf(stored)
	if len(given) == 0 || len(given) != len(known) || &given[0] != &known[0] {
		return func() {}
	}
	delete(metadata, "managedFields")
	return func() {
		if metadata, ok := updated.Object["metadata"].(map[string]any); ok {
			metadata["managedFields"] = given
			return
		}
		updated.Object["metadata"] = map[string]any{"managedFields": given}
	}
}

// ownersWithoutTimes returns the field owners. It shares everything but the removed times.
func ownersWithoutTimes(object *unstructured.Unstructured) []any {
	entries := slices.Clone(resource.OwnersOf(object))
	for i, entry := range entries {
		if owner, ok := entry.(map[string]any); ok {
			owner = maps.Clone(owner)
			delete(owner, "time")
			entries[i] = owner
		}
	}
	return entries
}

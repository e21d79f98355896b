package resource

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// keepServerFields takes the fields of the metadata that clients cannot change from the
// stored object. A missing uid means the stored one; another uid stays, and is not valid.
func keepServerFields(updated, stored *unstructured.Unstructured) {
	updated.SetGeneration(stored.GetGeneration())
	if updated.GetUID() == "" {
		updated.SetUID(stored.GetUID())
	}
	updated.SetCreationTimestamp(stored.GetCreationTimestamp())
	updated.SetDeletionTimestamp(stored.GetDeletionTimestamp())
	if updated.GetDeletionGracePeriodSeconds() == nil {
		updated.SetDeletionGracePeriodSeconds(stored.GetDeletionGracePeriodSeconds())
	}
	if updated.GetResourceVersion() == "" {
		updated.SetResourceVersion(stored.GetResourceVersion())
	}
}

// keepField takes a field at the top of an object from the stored object.
func keepField(updated, stored *unstructured.Unstructured, name string) {
	if value, ok := stored.Object[name]; ok {
		updated.Object[name] = value
		return
	}
	delete(updated.Object, name)
}

// hasChanged reports whether the objects differ in fields besides metadata and the ignored
// ones.
func hasChanged(a, b *unstructured.Unstructured, ignored ...string) bool {
	return !equality.Semantic.DeepEqual(without(a.Object, ignored), without(b.Object, ignored))
}

func without(content map[string]any, ignored []string) map[string]any {
	rest := make(map[string]any, len(content))
	for name, value := range content {
		rest[name] = value
	}
	for _, name := range append([]string{"metadata", "apiVersion"}, ignored...) {
		delete(rest, name)
	}
	return rest
}

// validateMetadata returns the mistakes in the metadata.
func validateMetadata(object, stored *unstructured.Unstructured, namespaced bool, name validation.ValidateNameFunc) field.ErrorList {
	path := field.NewPath("metadata")
	if stored == nil {
		return validation.ValidateObjectMetaAccessor(object, namespaced, name, path)
	}
	anyName := func(string, bool) []string { return nil } // the object exists
	return append(
		validation.ValidateObjectMetaAccessorUpdate(object, stored, path),
		validation.ValidateObjectMetaAccessor(object, namespaced, anyName, path)...)
}

package annotation

import (
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// limit is the maximum total size, in bytes, that the API server allows for the
	// keys and values of an object's annotations.
	limit = 256 << 10
	// Reserve is the room in bytes that a base leaves for the records of the next cycle, if
	// it can: without room for them, that cycle cannot be recorded.
	Reserve = 4 << 10
)

// Room returns how many bytes are left for the value of each of the annotations, next
// to all others that the object has after the patch. It may be negative.
func Room(body *object.Body, into map[string]any, keys []string) int {
	left := limit
	for _, key := range keys {
		left -= len(key)
	}
	patched := All(into)
	for key, value := range All(body.Raw()) {
		if _, changes := patched[key]; !changes && !slices.Contains(keys, key) {
			left -= size(key, value)
		}
	}
	for key, value := range patched {
		if value != nil && !slices.Contains(keys, key) {
			left -= size(key, value)
		}
	}
	return left / len(keys)
}

// All returns the annotations of an object, of a patch, or of an essence.
func All(of map[string]any) map[string]any {
	found, _ := object.Lookup(of, object.Path{"metadata", "annotations"})
	annotations, _ := found.(map[string]any)
	return annotations
}

func size(key string, value any) int {
	text, _ := value.(string)
	return len(key) + len(text)
}

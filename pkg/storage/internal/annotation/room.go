package annotation

import (
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// limit is how many bytes the API server allows for the keys and
	// values of all annotations of an object.
	limit = 256 << 10
	// reserve is left free by a base for the records of the next
	// cycle: without room for them nothing could ever be handled again.
	reserve = 4 << 10
)

// Room is how many bytes the value of each of the annotations may have beside
// all others that the object will have after the patch. It may be negative.
func Room(body *object.Body, into map[string]any, keys []string) int {
	left := limit - reserve
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

package storage

import (
	"fmt"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// annotationsLimit is how many bytes the API server allows for the keys and
	// values of all annotations of an object.
	annotationsLimit = 256 << 10
	// annotationsReserve is left free by a base for the records of the next
	// cycle: without room for them nothing could ever be handled again.
	annotationsReserve = 4 << 10
)

// fetchAnnotation reads the first of the annotations that is there and can be
// read. A broken one is reported only if no other one can be read in its place.
func fetchAnnotation[T any](body *object.Body, keys []string, what string, read func(string) (*T, error)) (*T, error) {
	var broken error
	for _, key := range keys {
		text, ok := body.Annotation(key)
		if !ok {
			continue
		}
		value, err := read(text)
		if value != nil {
			return value, nil
		}
		if err != nil && broken == nil {
			broken = &BrokenError{What: what, Where: fmt.Sprintf("annotation %q", key), Err: err}
		}
	}
	return nil, broken
}

// room is how many bytes the value of each of the annotations may have beside
// all others that the object will have after the patch. It may be negative.
func room(body *object.Body, into Patch, keys []string) int {
	left := annotationsLimit - annotationsReserve
	for _, key := range keys {
		left -= len(key)
	}
	patched := annotationsOf(into)
	for key, value := range annotationsOf(body.Raw()) {
		if _, changes := patched[key]; !changes && !slices.Contains(keys, key) {
			left -= annotationSize(key, value)
		}
	}
	for key, value := range patched {
		if value != nil && !slices.Contains(keys, key) {
			left -= annotationSize(key, value)
		}
	}
	return left / len(keys)
}

func annotationsOf(of map[string]any) map[string]any {
	found, _ := object.Lookup(of, object.Path{"metadata", "annotations"})
	annotations, _ := found.(map[string]any)
	return annotations
}

func annotationSize(key string, value any) int {
	text, _ := value.(string)
	return len(key) + len(text)
}

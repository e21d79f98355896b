package storage

import (
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/annotation"
)

// DefaultPrefix is the prefix of the annotations in which operators of Kopf and of
// this project store their state: "kopf.zalando.org".
const DefaultPrefix = annotation.DefaultPrefix

// fetchAnnotation returns the value of the first readable annotation. It reports an
// unreadable one only if none of the others can be read.
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

// ensureMarker adds the marker that tells other operators that the prefix belongs to an
// operator. The marker stays when the operator's other annotations are removed.
func ensureMarker(prefix string, body *object.Body, into Patch) {
	path := annotation.Path(prefix + "/" + annotation.Marker)
	if _, present := body.Lookup(path); !present && annotation.NeedsMarker(prefix) {
		into.Set(path, "yes")
	}
}

package storage

import (
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/annotation"
)

// DefaultPrefix is the prefix of the annotations in which Kopf's operators, and
// those of this project, keep what they know about an object: "kopf.zalando.org".
const DefaultPrefix = annotation.DefaultPrefix

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

// mark tells the other operators that the prefix is one of an operator. Once is
// enough: the marker stays when the operator's other annotations go.
func mark(prefix string, body *object.Body, into Patch) {
	path := annotation.Path(prefix + "/" + annotation.Marker)
	if _, present := body.Lookup(path); !present && annotation.NeedsMarker(prefix) {
		into.Set(path, "yes")
	}
}

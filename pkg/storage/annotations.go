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

// prefixed is a Progress that stores the records in annotations with a prefix.
type prefixed interface{ annotationPrefix() string }

func (s AnnotationsProgress) annotationPrefix() string { return s.prefix() }

func (s SmartProgress) annotationPrefix() string { return s.annotations().prefix() }

func (m MultiProgress) annotationPrefix() string {
	for _, each := range m {
		if storage, ok := each.(prefixed); ok {
			return storage.annotationPrefix()
		}
	}
	return DefaultPrefix
}

// RequestPrefix returns the prefix of the annotations in which people send requests to the
// operator that uses the storage: its own prefix if no operator takes such annotations for a
// change of the object, and DefaultPrefix otherwise.
func RequestPrefix(s Progress) string {
	storage, ok := s.(prefixed)
	if !ok {
		return DefaultPrefix
	}
	prefix := storage.annotationPrefix()
	if !annotation.NeedsMarker(prefix) && !annotation.IsKnownPrefix(prefix) {
		return DefaultPrefix
	}
	return prefix
}

// HasCopiedAnnotations reports whether Kubernetes copies the annotations of another object to
// this one: those of Deployments to their ReplicaSets.
func HasCopiedAnnotations(body *object.Body) bool {
	return annotation.Key(DefaultPrefix, "", body) != annotation.Key(DefaultPrefix, "", object.NewBody(nil))
}

package storage

import (
	"fmt"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/annotation"
)

// DefaultPrefix is the prefix of the annotations in which operators of Kopf and of
// this project store their state: "kopf.zalando.org".
const DefaultPrefix = annotation.DefaultPrefix

// fetchAnnotation returns the value of the first readable annotation. It reports an
// unreadable one only if none of the others can be read. The function what names the value for that error.
func fetchAnnotation[T any](body *object.Body, keys []string, what func() string, read func(string) (*T, error)) (*T, error) {
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
			broken = &BrokenError{What: what(), Where: fmt.Sprintf("annotation %q", key), Err: err}
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

// prefixed is a storage in annotations. It has several prefixes if it consists of several storages.
type prefixed interface{ annotationPrefixes() []string }

func (s AnnotationsDiffBase) annotationPrefixes() []string { return []string{s.prefix()} }

func (m MultiDiffBase) annotationPrefixes() []string { return prefixesOf(m...) }

func (s AnnotationsProgress) annotationPrefixes() []string { return []string{s.prefix()} }

func (s SmartProgress) annotationPrefixes() []string { return s.annotations().annotationPrefixes() }

func (m MultiProgress) annotationPrefixes() []string { return prefixesOf(m...) }

func prefixesOf[S any](storages ...S) []string {
	var prefixes []string
	for _, each := range storages {
		if storage, ok := any(each).(prefixed); ok {
			prefixes = append(prefixes, storage.annotationPrefixes()...)
		}
	}
	return prefixes
}

// RequestPrefix returns the prefix of the annotations in which people send requests to the operator
// that uses the storages. It is that of its progress if no operator takes such annotations for a
// change of the object, and DefaultPrefix otherwise. The marker makes other operators ignore a
// prefix. With the progress alone, only objects with retries have it, so the diff base must have
// the same prefix.
func RequestPrefix(d DiffBase, p Progress) string {
	prefixes := prefixesOf(p)
	if len(prefixes) == 0 {
		return DefaultPrefix
	}
	prefix := prefixes[0]
	if annotation.IsKnownPrefix(prefix) || annotation.NeedsMarker(prefix) && slices.Contains(prefixesOf(d), prefix) {
		return prefix
	}
	return DefaultPrefix
}

// HasCopiedAnnotations reports whether Kubernetes copies the annotations of another object to
// this one: those of Deployments to their ReplicaSets.
func HasCopiedAnnotations(body *object.Body) bool {
	return annotation.Key(DefaultPrefix, "", body) != annotation.Key(DefaultPrefix, "", object.NewBody(nil))
}

package storage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/annotation"
)

// AnnotationsProgress stores each record in an annotation of the object, named after
// the handler's id. It works for every resource.
//
// Specification: Configuration, "Handling progress".
type AnnotationsProgress struct {
	// Prefix is the domain of the annotations; DefaultPrefix if empty. Operators
	// that handle the same objects must use different prefixes.
	Prefix string
	// Verbose writes nulls for the absent fields of a record.
	Verbose bool
	// WithoutV1 disables reading and writing the annotation under the name that
	// early operators of Kopf use if the prefix and the id are long. Purge still
	// removes it.
	WithoutV1 bool
}

var (
	_ Progress    = AnnotationsProgress{}
	_ TouchPurger = AnnotationsProgress{}
	_ Validator   = AnnotationsProgress{}
)

func (s AnnotationsProgress) prefix() string { return cmp.Or(s.Prefix, DefaultPrefix) }

func (s AnnotationsProgress) keys(body *object.Body, handlerID string) []string {
	return annotation.Keys(s.prefix(), handlerID, body, s.WithoutV1)
}

// Fetch returns the record.
func (s AnnotationsProgress) Fetch(_ context.Context, body *object.Body, handlerID string) (*Record, error) {
	return fetchAnnotation(body, s.keys(body, handlerID), func() string { return progressOf(handlerID) }, parseRecord)
}

func progressOf(handlerID string) string { return fmt.Sprintf("progress of handler %q", handlerID) }

// parseRecord decodes a record, which may come from another writer. It returns nil for null.
func parseRecord(text string) (*Record, error) {
	var record *Record
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return nil, err
	}
	return record, nil
}

// Store writes the record.
func (s AnnotationsProgress) Store(_ context.Context, body *object.Body, into Patch, handlerID string, record *Record) error {
	text, err := record.text(s.Verbose)
	if err != nil {
		return err
	}
	for _, key := range s.keys(body, handlerID) {
		into.put(annotation.Path(key), body, text)
	}
	ensureMarker(s.prefix(), body, into)
	return nil
}

// Purge removes the record.
func (s AnnotationsProgress) Purge(_ context.Context, body *object.Body, into Patch, handlerID string) error {
	for _, key := range annotation.Keys(s.prefix(), handlerID, body, false) {
		into.remove(annotation.Path(key), body)
	}
	return nil
}

// touchName is the name of the annotation that Kopf writes to trigger a watch event.
const touchName = "touch-dummy"

// PurgeTouch removes the annotation touch-dummy.
func (s AnnotationsProgress) PurgeTouch(body *object.Body, into Patch) {
	for _, key := range annotation.Keys(s.prefix(), touchName, body, false) {
		into.remove(annotation.Path(key), body)
	}
}

// Clear returns the essence without the annotations of the prefix.
func (s AnnotationsProgress) Clear(essence object.Essence) object.Essence {
	annotations := annotation.All(essence)
	prefix := s.prefix() + "/"
	left := annotation.WithoutKeys(annotations, func(key string) bool { return strings.HasPrefix(key, prefix) })
	switch {
	case len(left) == len(annotations):
		return essence
	case len(left) == 0:
		return Without(essence, object.Path{"metadata", "annotations"})
	default:
		return with(essence, object.Path{"metadata", "annotations"}, left)
	}
}

// Validate checks the prefix.
func (s AnnotationsProgress) Validate() error { return validatePrefix(s.Prefix) }

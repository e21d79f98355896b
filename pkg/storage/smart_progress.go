package storage

import (
	"context"
	"errors"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// SmartProgress is the default storage. It keeps the records in annotations, and
// also reads and removes those that early operators of Kopf have left in the
// object's status. Its zero value is what every operator of Kopf uses by default.
//
// Specification: Configuration, "Handling progress". Newer than there: nothing
// is written to the status any more, which saves one request per pass.
type SmartProgress struct {
	// Prefix is the domain of the annotations; DefaultPrefix if empty.
	Prefix string
	// Field is where the records once were; status.kopf.progress if empty.
	Field object.Path
	// Verbose writes nulls for what is absent in a record.
	Verbose bool
	// WithoutV1 is that of AnnotationsProgress.
	WithoutV1 bool
}

var (
	_ Progress  = SmartProgress{}
	_ Validator = SmartProgress{}
)

func (s SmartProgress) annotations() AnnotationsProgress {
	return AnnotationsProgress{Prefix: s.Prefix, Verbose: s.Verbose, WithoutV1: s.WithoutV1}
}

func (s SmartProgress) status() StatusProgress { return StatusProgress{Field: s.Field} }

func (s SmartProgress) both() MultiProgress { return MultiProgress{s.annotations(), s.status()} }

// Fetch reads the record from the annotation, or else from the status.
func (s SmartProgress) Fetch(ctx context.Context, body *object.Body, handlerID string) (*Record, error) {
	return s.both().Fetch(ctx, body, handlerID)
}

// Store writes the record to the annotation only.
func (s SmartProgress) Store(ctx context.Context, body *object.Body, into Patch, handlerID string, record *Record) error {
	return s.annotations().Store(ctx, body, into, handlerID, record)
}

// Purge removes the record from both.
func (s SmartProgress) Purge(ctx context.Context, body *object.Body, into Patch, handlerID string) error {
	return s.both().Purge(ctx, body, into, handlerID)
}

// Clear leaves out the traces in both.
func (s SmartProgress) Clear(essence object.Essence) object.Essence { return s.both().Clear(essence) }

// Validate checks the prefix and the field.
func (s SmartProgress) Validate() error {
	return errors.Join(s.annotations().Validate(), s.status().Validate())
}

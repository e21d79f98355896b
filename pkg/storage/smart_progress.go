package storage

import (
	"context"
	"errors"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// SmartProgress is the default storage. It stores the records in annotations, and also
// reads and removes those that early operators of Kopf have left in the object's
// status. Its zero value matches the default of Kopf's operators.
//
// Specification: Configuration, "Handling progress". Unlike there, records are no
// longer written to the status, which saves one request per pass.
type SmartProgress struct {
	// Prefix is the domain of the annotations; DefaultPrefix if empty.
	Prefix string
	// Field is the location of the old records; status.kopf.progress if empty.
	Field object.Path
	// Verbose writes nulls for the absent fields of a record.
	Verbose bool
	// WithoutV1 is the same as in AnnotationsProgress.
	WithoutV1 bool
}

var (
	_ Progress    = SmartProgress{}
	_ TouchPurger = SmartProgress{}
	_ Validator   = SmartProgress{}
)

func (s SmartProgress) annotations() AnnotationsProgress {
	return AnnotationsProgress{Prefix: s.Prefix, Verbose: s.Verbose, WithoutV1: s.WithoutV1}
}

func (s SmartProgress) status() StatusProgress { return StatusProgress{Field: s.Field} }

func (s SmartProgress) storages() MultiProgress { return MultiProgress{s.annotations(), s.status()} }

// Fetch returns the record from the annotation, or otherwise from the status.
func (s SmartProgress) Fetch(ctx context.Context, body *object.Body, handlerID string) (*Record, error) {
	return s.storages().Fetch(ctx, body, handlerID)
}

// Store writes the record to the annotation only.
func (s SmartProgress) Store(ctx context.Context, body *object.Body, into Patch, handlerID string, record *Record) error {
	return s.annotations().Store(ctx, body, into, handlerID, record)
}

// Purge removes the record from the annotation and the status.
func (s SmartProgress) Purge(ctx context.Context, body *object.Body, into Patch, handlerID string) error {
	return s.storages().Purge(ctx, body, into, handlerID)
}

// PurgeTouch removes the annotation touch-dummy.
func (s SmartProgress) PurgeTouch(body *object.Body, into Patch) { s.storages().PurgeTouch(body, into) }

// Clear returns the essence without the records of both.
func (s SmartProgress) Clear(essence object.Essence) object.Essence {
	return s.storages().Clear(essence)
}

// Validate checks the prefix and the field.
func (s SmartProgress) Validate() error {
	return errors.Join(s.annotations().Validate(), s.status().Validate())
}

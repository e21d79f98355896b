package storage

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// StatusProgress stores the records in a field of the object's status, or in any other
// field of the object: a mapping whose keys are the ids of the handlers. The schema of
// the resource must allow the field: the API server silently drops unknown fields, and
// then handlers are called endlessly.
//
// Specification: Configuration, "Handling progress".
type StatusProgress struct {
	// Field holds the records; status.kopf.progress if empty.
	Field object.Path
}

var (
	_ Progress  = StatusProgress{}
	_ Validator = StatusProgress{}
)

func (s StatusProgress) field() object.Path {
	if len(s.Field) == 0 {
		return object.Path{"status", "kopf", "progress"}
	}
	return s.Field
}

// Fetch returns the record.
func (s StatusProgress) Fetch(_ context.Context, body *object.Body, handlerID string) (*Record, error) {
	field := child(s.field(), handlerID)
	value, ok := body.Lookup(field)
	if !ok {
		return nil, nil
	}
	record, err := recordOf(value)
	if err != nil {
		return nil, &BrokenError{What: progressOf(handlerID), Where: fmt.Sprintf("field %q", field), Err: err}
	}
	return record, nil
}

// recordOf decodes a record from a field.
func recordOf(value any) (*Record, error) {
	record := new(Record)
	data, err := json.Marshal(value)
	if err == nil {
		err = record.UnmarshalJSON(data)
	}
	return record, err
}

// Store writes the record. A merge patch keeps the fields that it does not name, so
// Store writes nulls for the fields that the record no longer has.
func (s StatusProgress) Store(_ context.Context, body *object.Body, into Patch, handlerID string, record *Record) error {
	normalized, err := object.Normalize(record)
	if err != nil {
		return err
	}
	fields, _ := normalized.(map[string]any)
	field := child(s.field(), handlerID)
	present, _ := body.Lookup(field)
	if object.Equal(present, fields) {
		into.Drop(field)
		return nil
	}
	if old, ok := present.(map[string]any); ok {
		for key := range old {
			if _, stays := fields[key]; !stays {
				fields[key] = nil
			}
		}
	}
	into.Set(field, fields)
	return nil
}

// Purge removes the record.
func (s StatusProgress) Purge(_ context.Context, body *object.Body, into Patch, handlerID string) error {
	into.remove(child(s.field(), handlerID), body)
	return nil
}

// Clear returns the essence without the field of the records.
func (s StatusProgress) Clear(essence object.Essence) object.Essence {
	return Without(essence, s.field())
}

// Validate checks the field.
func (s StatusProgress) Validate() error { return validateField(s.Field) }

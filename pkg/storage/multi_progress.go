package storage

import (
	"context"
	"errors"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// MultiProgress keeps the records in several storages at once, to get from one
// storage to another while handling goes on: the first record found is read, all
// are written and removed.
//
// Specification: Configuration, "Handling progress".
type MultiProgress []Progress

var (
	_ Progress  = MultiProgress{}
	_ Validator = MultiProgress{}
)

// Fetch returns the first record that is there and can be read.
func (m MultiProgress) Fetch(ctx context.Context, body *object.Body, handlerID string) (*Record, error) {
	var broken error
	for _, each := range m {
		record, err := each.Fetch(ctx, body, handlerID)
		if record != nil {
			return record, nil
		}
		if err != nil && !IsBroken(err) {
			return nil, err
		}
		if broken == nil {
			broken = err
		}
	}
	return nil, broken
}

// Store writes the record to all storages.
func (m MultiProgress) Store(ctx context.Context, body *object.Body, into Patch, handlerID string, record *Record) error {
	var errs []error
	for _, each := range m {
		errs = append(errs, each.Store(ctx, body, into, handlerID, record))
	}
	return errors.Join(errs...)
}

// Purge removes the record from all storages.
func (m MultiProgress) Purge(ctx context.Context, body *object.Body, into Patch, handlerID string) error {
	var errs []error
	for _, each := range m {
		errs = append(errs, each.Purge(ctx, body, into, handlerID))
	}
	return errors.Join(errs...)
}

// Clear leaves out the traces of all storages.
func (m MultiProgress) Clear(essence object.Essence) object.Essence {
	for _, each := range m {
		essence = each.Clear(essence)
	}
	return essence
}

// Validate checks all storages.
func (m MultiProgress) Validate() error { return validateAll(m) }

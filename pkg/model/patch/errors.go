package patch

import (
	"errors"
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// FieldError reports a field of a patch that cannot be written. It is a mistake of the
// handler that has filled the patch, and repeats with every attempt.
type FieldError struct {
	Field object.Path // empty for the entire object
	Err   error
}

func (e *FieldError) Error() string {
	if len(e.Field) == 0 {
		return fmt.Sprintf("the patch cannot be made: %s", e.Err)
	}
	return fmt.Sprintf("the patch of the field %q cannot be made: %s", e.Field, e.Err)
}

// Unwrap returns the reason.
func (e *FieldError) Unwrap() error { return e.Err }

// TransformError reports a failed transformation.
type TransformError struct {
	Name  string // of the function
	Err   error  // what it returned or panicked with
	Stack []byte // of the panic; nil if it did not panic
}

func (e *TransformError) Error() string {
	return fmt.Sprintf("the change of the object failed: %s", e.Err)
}

// Unwrap returns the error that the transformation returned or panicked with.
func (e *TransformError) Unwrap() error { return e.Err }

// checkWritable rejects changes that handlers must not make. The API server would ignore some
// of them, so that the operator would write again and again; some refer to another
// object; and the resource version would disable the protection against lost updates.
func checkWritable(merge map[string]any) error {
	if err := rejectFields(merge, nil, "apiVersion", "kind"); err != nil {
		return err
	}
	change, changed := merge["metadata"]
	metadata, isMapping := change.(map[string]any)
	if changed && !isMapping {
		return &FieldError{Field: object.Path{"metadata"}, Err: errors.New("it cannot be replaced as a whole; patch its fields")}
	}
	return rejectFields(metadata, object.Path{"metadata"},
		"name", "namespace", "uid", "resourceVersion", "generation", "managedFields",
		"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
}

func rejectFields(merge map[string]any, path object.Path, fields ...string) error {
	for _, field := range fields {
		if _, changed := merge[field]; changed {
			return &FieldError{Field: append(path, field), Err: errors.New("handlers must not change it: leave it out of the patch")}
		}
	}
	return nil
}

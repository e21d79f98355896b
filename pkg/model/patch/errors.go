package patch

import (
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

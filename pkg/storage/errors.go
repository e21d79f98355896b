package storage

import (
	"errors"
	"fmt"
)

// BrokenError reports a stored value that cannot be read, because it was edited or
// something else uses the same place. The message never quotes the value, which may be
// as long and as secret as the object itself.
type BrokenError struct {
	What  string // the expected content: `progress of handler "create_fn"`
	Where string // its location: `annotation "kopf.zalando.org/create_fn"`
	Err   error  // the reason
}

// Error describes the value, its location, the reason, and the remedy.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("the %s in the %s cannot be read; repair or remove it: %v", e.What, e.Where, e.Err)
}

// Unwrap returns the reason.
func (e *BrokenError) Unwrap() error { return e.Err }

// IsBroken reports whether the error is about an unreadable stored value.
func IsBroken(err error) bool {
	var broken *BrokenError
	return errors.As(err, &broken)
}

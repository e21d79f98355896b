package storage

import (
	"errors"
	"fmt"
)

// BrokenError is a stored value that cannot be read: somebody has edited it, or
// something else uses the same place. The message never quotes the value, which
// may be as long and as secret as the object itself.
type BrokenError struct {
	What  string // what should be there: `progress of handler "create_fn"`
	Where string // the place of it: `annotation "kopf.zalando.org/create_fn"`
	Err   error  // what is wrong with it
}

// Error tells what is broken, where, why, and the remedy.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("the %s in the %s cannot be read, repair or remove it: %v", e.What, e.Where, e.Err)
}

// Unwrap is what is wrong with the value.
func (e *BrokenError) Unwrap() error { return e.Err }

// IsBroken reports whether the error is about a stored value that cannot be read.
func IsBroken(err error) bool {
	var broken *BrokenError
	return errors.As(err, &broken)
}

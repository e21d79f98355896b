package handler

import (
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Index declares a function that fills an index from every object. By default, its
// errors are ignored, and the index keeps its values. Its result goes to the Table; with nil, the
// index keeps its values, too.
func Index(sel selector.Selector, fn Function, options ...Option) (*Declaration, error) {
	return declare(OnIndex, sel, fn, settingsOf(options), func(d *Declaration) { d.Errors = ErrorsIgnored })
}

// Table is the engine's interface to an index. It is safe for concurrent use.
type Table interface {
	// Claim reserves the index for an operator. It fails if another operator uses it.
	Claim() error
	// Release empties the index, and lets another operator claim it.
	Release()
	// Replace replaces the values of an object. It fails if they do not have the type of the
	// index.
	Replace(key object.Key, values any) error
	// Remove removes all values of an object.
	Remove(key object.Key)
	// RemoveAll removes the values of all objects for which the function returns true.
	RemoveAll(gone func(key object.Key) bool)
}

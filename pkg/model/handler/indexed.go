package handler

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// IndexFunc tells what an index is to have of an object; nil: as it has it. It is
// called for every watch event of the object, and delays all other handlers: it
// must be quick. What it returns is for the Table of its declaration.
//
// Specification: In-memory indexing.
type IndexFunc func(ctx context.Context, i *Indexed) (any, error)

// Indexed is the arguments of an IndexFunc: the object, without the means to change
// it.
//
// Specification: Arguments; In-memory indexing.
type Indexed struct {
	readOnly
	attemptInfo
}

var _ Arguments = (*Indexed)(nil)

// NewIndexed makes the arguments of one call.
func NewIndexed(s CallContext, param any, a Attempt) *Indexed {
	return &Indexed{readOnly{s, param}, attemptInfo{a}}
}

// Table is an index as the engine sees it. It is safe for concurrent use.
type Table interface {
	// Claim takes the index for an operator. The error says that another one has it.
	Claim() error
	// Release empties it, and gives it back.
	Release()
	// Replace puts the values of an object in the place of its former ones. The
	// error says that they are not of the type of the index.
	Replace(key object.Key, values any) error
	// Remove takes out all values of an object.
	Remove(key object.Key)
	// RemoveAll takes out all values of all objects that are gone.
	RemoveAll(gone func(key object.Key) bool)
}

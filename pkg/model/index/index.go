package index

import (
	"errors"
	"sync"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Index is a mapping of keys to the values that objects have under them. It is
// empty until an operator fills it, and again when the operator has ended. It is
// safe for concurrent use; the zero value is ready to use.
//
// Specification: In-memory indexing, "Index structure".
type Index[K comparable, V any] struct {
	mu       sync.RWMutex
	claimed  bool
	cells    map[K]*cell[K, V]
	holdings map[object.Key]*holding[K, V]
}

var _ handler.Table = (*Index[string, any])(nil)

// New makes an empty index.
func New[K comparable, V any]() *Index[K, V] { return &Index[K, V]{} }

// Claim takes the index for one operator. It fails while another operator has it:
// each would take the other's objects for gone.
func (x *Index[K, V]) Claim() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.claimed {
		return errors.New("the index is in use by an operator that is running: give each operator a registry and indices of its own")
	}
	x.claimed = true
	return nil
}

// Release forgets everything, and lets another operator claim the index.
func (x *Index[K, V]) Release() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.claimed, x.cells, x.holdings = false, nil, nil
}

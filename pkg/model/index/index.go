package index

import (
	"errors"
	"sync"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Index maps keys to the values that objects have under them. It is empty until an
// operator fills it, and again after the operator has ended. It is safe for concurrent
// use. The zero value is ready to use.
//
// Specification: In-memory indexing, "Index structure".
type Index[K comparable, V any] struct {
	mu       sync.RWMutex
	claimed  bool
	cells    map[K]*cell[K, V]
	holdings map[object.Key]*holding[K, V]
}

var _ handler.Table = (*Index[string, any])(nil)

// New returns an empty index.
func New[K comparable, V any]() *Index[K, V] { return &Index[K, V]{} }

// Claim reserves the index for one operator. It fails while another operator uses the
// index, because each would remove the other's objects.
func (x *Index[K, V]) Claim() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.claimed {
		return errors.New("the index is in use by another running operator: give each operator its own registry and indices")
	}
	x.claimed = true
	return nil
}

// Release empties the index, and lets another operator claim it.
func (x *Index[K, V]) Release() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.claimed, x.cells, x.holdings = false, nil, nil
}

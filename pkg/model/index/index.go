package index

import (
	"errors"
	"sync"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Index maps keys to the values that objects have under them. It is empty until an
// operator fills it, and again after the operator has ended. It is safe for concurrent
// use. The zero value is ready to use.
//
// Specification: In-memory indexing, "Index structure".
type Index[K comparable, V any] struct {
	mu    sync.RWMutex
	cells map[K]*cell[K, V]
	own   contribution[K, V]
	// unavailable is set while nothing fills the index, and readers must know that.
	unavailable bool
	// watchers are replaced as a whole: they are called without the lock.
	watchers []*watcher
}

// contribution contains the values that one function has put into an index. The index's lock guards it.
type contribution[K comparable, V any] struct {
	claimed  bool
	holdings map[object.Key]*holding[K, V]
}

var _ handler.Table = (*Index[string, any])(nil)

// New returns an empty index.
func New[K comparable, V any]() *Index[K, V] { return &Index[K, V]{} }

// Claim reserves the index for one operator. It fails while another operator uses the
// index, because each would remove the other's objects.
func (x *Index[K, V]) Claim() error { return x.claim(&x.own) }

// Release empties the index, and lets another operator claim it. The values of sources stay
// until these are released.
func (x *Index[K, V]) Release() { x.release(&x.own) }

func (x *Index[K, V]) claim(c *contribution[K, V]) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c.claimed {
		return errors.New("the index is in use by another running operator: give each operator its own registry and indices")
	}
	c.claimed = true
	return nil
}

func (x *Index[K, V]) release(c *contribution[K, V]) {
	change(x, func() (changed bool) {
		c.claimed = false
		for owner := range c.holdings {
			changed = x.replace(c, owner, nil) || changed
		}
		return changed
	})
}

// SetAvailable sets whether the index of a table can be read. Reading an index that is not
// available panics with a handler.UnavailableError. That is for commands that evaluate filters
// without an operator and recover from it: an index that nothing fills must not look like an empty
// one. It is internal to the framework, and ignores other tables.
func SetAvailable(of handler.Table, available bool) {
	if table, ok := of.(interface{ setAvailable(available bool) }); ok {
		table.setAvailable(available)
	}
}

func (x *Index[K, V]) setAvailable(available bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unavailable = !available
}

// check must be called with the lock for reading, which a panic releases.
func (x *Index[K, V]) check() {
	if x.unavailable {
		panic(&handler.UnavailableError{What: "an index"}) //nolint:forbidigo // nothing else can end a filter; only commands make it, and recover
	}
}

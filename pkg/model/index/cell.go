package index

import (
	"reflect"
	"slices"
	"sync/atomic"
)

// cell is all that is under one key. There is no empty one.
type cell[K comparable, V any] struct {
	entries []entry[K, V]
	// view is the values as readers get them; nil until somebody looks, after
	// each change. Readers make it, several of them possibly at the same time.
	view atomic.Pointer[[]V]
}

// entry is what one object has under one key.
type entry[K comparable, V any] struct {
	value   V
	holding *holding[K, V]
	nth     int // of the places of the holding
}

// holding is where one object has its values.
type holding[K comparable, V any] struct{ places []place[K, V] }

// place is one of them.
type place[K comparable, V any] struct {
	key  K
	cell *cell[K, V]
	at   int // of the entries of the cell
}

// values makes the view, if there is none yet.
func (c *cell[K, V]) values() []V {
	if view := c.view.Load(); view != nil {
		return *view
	}
	values := make([]V, len(c.entries))
	for i := range c.entries {
		values[i] = c.entries[i].value
	}
	c.view.Store(&values)
	return values
}

// add gives the holding a place in the cell.
func (c *cell[K, V]) add(h *holding[K, V], key K, value V) {
	h.places = append(h.places, place[K, V]{key, c, len(c.entries)})
	c.entries = append(c.entries, entry[K, V]{value, h, len(h.places) - 1})
	c.view.Store(nil)
}

// set changes a value. Most events of an object change nothing that is indexed:
// then the view is as good as before.
func (c *cell[K, V]) set(at int, value V) {
	if same(c.entries[at].value, value) {
		return
	}
	c.entries[at].value = value
	c.view.Store(nil)
}

// same reports whether two values are known to be equal; values that cannot be
// compared are not.
func same[V any](a, b V) bool {
	va, vb := reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()
	return va.Comparable() && vb.Comparable() && va.Equal(vb)
}

// leave gives up a place of the holding. The last entry of the cell moves to where
// the object's was, and so does the last place of the holding.
func (h *holding[K, V]) leave(nth int) {
	left := h.places[nth]
	c, last := left.cell, len(left.cell.entries)-1
	moved := c.entries[last]
	moved.holding.places[moved.nth].at = left.at
	c.entries[left.at] = moved
	c.entries = shortened(c.entries)
	c.view.Store(nil)

	end := len(h.places) - 1
	if nth < end {
		moved := h.places[end]
		h.places[nth] = moved
		moved.cell.entries[moved.at].nth = nth
	}
	h.places = shortened(h.places)
}

// shortened is the slice without its last element. What has become much too large
// is given back.
func shortened[E any](s []E) []E {
	clear(s[len(s)-1:])
	s = s[:len(s)-1]
	if cap(s) > 32 && len(s) < cap(s)/4 {
		s = slices.Clip(slices.Clone(s))
	}
	return s
}

package index

import (
	"reflect"
	"slices"
	"sync/atomic"
)

// cell contains the entries of one key. It is never empty.
type cell[K comparable, V any] struct {
	entries []entry[K, V]
	// view caches the values for readers; nil after a change. Several readers may
	// compute it at the same time.
	view atomic.Pointer[[]V]
}

// entry is the value of one object in a cell.
type entry[K comparable, V any] struct {
	value   V
	holding *holding[K, V]
	nth     int // index into the holding's places
}

// holding locates the entries of one object.
type holding[K comparable, V any] struct{ places []place[K, V] }

// place locates one entry.
type place[K comparable, V any] struct {
	key  K
	cell *cell[K, V]
	at   int // index into the cell's entries
}

// values returns the cached view, and creates it if necessary.
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

// add adds a value of the object to the cell.
func (c *cell[K, V]) add(h *holding[K, V], key K, value V) {
	h.places = append(h.places, place[K, V]{key, c, len(c.entries)})
	c.entries = append(c.entries, entry[K, V]{value, h, len(h.places) - 1})
	c.view.Store(nil)
}

// set replaces a value, and returns the former one if the new one may differ. Most events of
// an object change no indexed values; then the view stays valid.
func (c *cell[K, V]) set(at int, value V) (former V, replaced bool) {
	former = c.entries[at].value
	if same(former, value) {
		return former, false
	}
	c.entries[at].value = value
	c.view.Store(nil)
	return former, true
}

// same reports whether two values are equal. Values that are not comparable are
// considered different.
func same[V any](a, b V) bool {
	va := reflect.ValueOf(&a).Elem()
	vb := reflect.ValueOf(&b).Elem()
	return va.Comparable() && vb.Comparable() && va.Equal(vb)
}

// removePlace removes a place of the holding and its entry. The last entry of the cell and
// the last place of the holding move to the free positions.
func (h *holding[K, V]) removePlace(nth int) {
	left := h.places[nth]
	c := left.cell
	last := len(left.cell.entries) - 1
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

// shortened returns the slice without its last element. It reallocates a slice that has
// become much too large.
func shortened[E any](s []E) []E {
	clear(s[len(s)-1:])
	s = s[:len(s)-1]
	if cap(s) > 32 && len(s) < cap(s)/4 {
		s = slices.Clip(slices.Clone(s))
	}
	return s
}

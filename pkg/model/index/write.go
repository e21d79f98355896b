package index

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Replace replaces the values of an object. They are a map[K]V, which is not retained. Nil
// or a nil map means that there is no result, and leaves the object's values in the index.
// An empty map removes them. Nil values are ordinary values. If the values do not fit the
// index, Replace returns an error and changes nothing.
//
// Specification: In-memory indexing, "Conditional indexing".
func (x *Index[K, V]) Replace(owner object.Key, values any) error {
	return x.store(&x.own, owner, values)
}

// Remove removes all values of an object, and the keys that become empty.
func (x *Index[K, V]) Remove(owner object.Key) { x.remove(&x.own, owner) }

// RemoveAll removes the values of all objects for which the function returns true.
func (x *Index[K, V]) RemoveAll(gone func(owner object.Key) bool) { x.removeAll(&x.own, gone) }

func (x *Index[K, V]) store(c *contribution[K, V], owner object.Key, values any) error {
	if values == nil {
		return nil
	}
	typed, ok := values.(map[K]V)
	if !ok {
		return fmt.Errorf("the values have the type %T, but the index requires %T", values, typed)
	}
	if typed == nil {
		return nil
	}
	for key := range typed {
		if key != key { //nolint:gocritic // NaN differs from itself
			return fmt.Errorf("the key %v does not equal itself, so it could not be looked up", key)
		}
	}
	change(x, func() bool { return x.replace(c, owner, typed) })
	return nil
}

func (x *Index[K, V]) remove(c *contribution[K, V], owner object.Key) {
	change(x, func() bool { return x.replace(c, owner, nil) })
}

func (x *Index[K, V]) removeAll(c *contribution[K, V], gone func(owner object.Key) bool) {
	change(x, func() (changed bool) {
		for owner := range c.holdings {
			if gone(owner) {
				changed = x.replace(c, owner, nil) || changed
			}
		}
		return changed
	})
}

// replace replaces the values of an object, and reports whether the watchers must know. It
// compares values in depth only if there are any.
func (x *Index[K, V]) replace(c *contribution[K, V], owner object.Key, values map[K]V) (changed bool) {
	held := c.holdings[owner]
	if held == nil {
		if len(values) == 0 {
			return false
		}
		held = c.hold(owner)
	}
	for nth := len(held.places) - 1; nth >= 0; nth-- {
		at := held.places[nth]
		if value, stays := values[at.key]; !stays {
			x.removePlace(held, nth)
			changed = true
		} else if former, replaced := at.cell.set(at.at, value); replaced && !changed {
			changed = len(x.watchers) > 0 && !reflect.DeepEqual(former, value)
		}
	}
	if len(held.places) < len(values) {
		x.add(held, values)
		changed = true
	}
	if len(held.places) == 0 {
		x.drop(c, owner)
	}
	return changed
}

func (c *contribution[K, V]) hold(owner object.Key) *holding[K, V] {
	if c.holdings == nil {
		c.holdings = map[object.Key]*holding[K, V]{}
	}
	held := &holding[K, V]{}
	c.holdings[owner] = held
	return held
}

// drop removes an object that has no more values in the contribution. It frees the memory
// of empty maps, because maps do not shrink.
func (x *Index[K, V]) drop(c *contribution[K, V], owner object.Key) {
	delete(c.holdings, owner)
	if len(c.holdings) == 0 {
		c.holdings = nil
	}
	if len(x.cells) == 0 {
		x.cells = nil
	}
}

func (x *Index[K, V]) removePlace(held *holding[K, V], nth int) {
	left := held.places[nth]
	held.removePlace(nth)
	if len(left.cell.entries) == 0 {
		delete(x.cells, left.key)
	}
}

// add adds the values whose keys the object does not have yet.
func (x *Index[K, V]) add(held *holding[K, V], values map[K]V) {
	known := make(map[K]struct{}, len(held.places))
	for _, at := range held.places {
		known[at.key] = struct{}{}
	}
	held.places = slices.Grow(held.places, len(values)-len(held.places))
	if x.cells == nil {
		x.cells = map[K]*cell[K, V]{}
	}
	for key, value := range values {
		if _, has := known[key]; has {
			continue
		}
		found := x.cells[key]
		if found == nil {
			found = &cell[K, V]{}
			x.cells[key] = found
		}
		found.add(held, key, value)
	}
}

package index

import (
	"fmt"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Replace puts the values of an object in the place of its former ones. They are a
// map[K]V, which is not kept. Nil, also a nil map, is no result: what the object
// has in the index stays. An empty map leaves nothing of it. Nil values are values
// like any other. The error says that the values cannot be put into this index;
// nothing is changed then.
//
// Specification: In-memory indexing, "Conditional indexing".
func (x *Index[K, V]) Replace(owner object.Key, values any) error {
	if values == nil {
		return nil
	}
	typed, ok := values.(map[K]V)
	if !ok {
		return fmt.Errorf("the values are a %T, and the index takes a %T", values, typed)
	}
	if typed == nil {
		return nil
	}
	for key := range typed {
		if key != key { //nolint:gocritic // NaN differs from itself
			return fmt.Errorf("the key %v does not equal itself: nobody could look it up", key)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.replace(owner, typed)
	return nil
}

// Remove takes out all values of an object. Keys without any value go with them.
func (x *Index[K, V]) Remove(owner object.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.replace(owner, nil)
}

// RemoveAll takes out all values of all objects that are gone.
func (x *Index[K, V]) RemoveAll(gone func(owner object.Key) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for owner := range x.holdings {
		if gone(owner) {
			x.replace(owner, nil)
		}
	}
}

func (x *Index[K, V]) replace(owner object.Key, values map[K]V) {
	held := x.holdings[owner]
	if held == nil {
		if len(values) == 0 {
			return
		}
		held = x.hold(owner)
	}
	for nth := len(held.places) - 1; nth >= 0; nth-- {
		at := held.places[nth]
		if value, stays := values[at.key]; stays {
			at.cell.set(at.at, value)
		} else {
			x.leave(held, nth)
		}
	}
	if len(held.places) < len(values) {
		x.add(held, values)
	}
	if len(held.places) == 0 {
		x.drop(owner)
	}
}

func (x *Index[K, V]) hold(owner object.Key) *holding[K, V] {
	if x.holdings == nil {
		x.holdings, x.cells = map[object.Key]*holding[K, V]{}, map[K]*cell[K, V]{}
	}
	held := &holding[K, V]{}
	x.holdings[owner] = held
	return held
}

// drop forgets an object that has nothing in the index any more. An index without
// any takes no memory: maps do not shrink by themselves.
func (x *Index[K, V]) drop(owner object.Key) {
	delete(x.holdings, owner)
	if len(x.holdings) == 0 {
		x.holdings, x.cells = nil, nil
	}
}

func (x *Index[K, V]) leave(held *holding[K, V], nth int) {
	left := held.places[nth]
	held.leave(nth)
	if len(left.cell.entries) == 0 {
		delete(x.cells, left.key)
	}
}

// add adds the values under the keys that the object has no place for yet.
func (x *Index[K, V]) add(held *holding[K, V], values map[K]V) {
	known := make(map[K]struct{}, len(held.places))
	for _, at := range held.places {
		known[at.key] = struct{}{}
	}
	held.places = slices.Grow(held.places, len(values)-len(held.places))
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

package index

import (
	"iter"
	"maps"
	"slices"
)

// Get returns the values of a key in no particular order, or nil if there are none. The
// values are a consistent snapshot that is shared: do not modify it. While no value of
// the key changes, repeated calls cost no more than a map lookup.
//
// Specification: In-memory indexing, "Index content".
func (x *Index[K, V]) Get(key K) []V {
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.check()
	if found := x.cells[key]; found != nil {
		return found.values()
	}
	return nil
}

// Has reports whether the key has any values.
func (x *Index[K, V]) Has(key K) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.check()
	return x.cells[key] != nil
}

// Len returns the number of keys.
func (x *Index[K, V]) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.check()
	return len(x.cells)
}

// Keys iterates over a snapshot of the keys in no particular order. The loop can take any
// time, and can use the index.
func (x *Index[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for _, key := range x.keys() {
			if !yield(key) {
				return
			}
		}
	}
}

func (x *Index[K, V]) keys() []K {
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.check()
	return slices.AppendSeq(make([]K, 0, len(x.cells)), maps.Keys(x.cells))
}

// All iterates over a snapshot of the keys and their values. As with Get, do not modify
// the values.
func (x *Index[K, V]) All() iter.Seq2[K, []V] {
	return func(yield func(K, []V) bool) {
		for _, item := range x.items() {
			if !yield(item.key, item.values) {
				return
			}
		}
	}
}

type item[K comparable, V any] struct {
	key    K
	values []V
}

func (x *Index[K, V]) items() []item[K, V] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.check()
	items := make([]item[K, V], 0, len(x.cells))
	for key, found := range x.cells {
		items = append(items, item[K, V]{key, found.values()})
	}
	return items
}

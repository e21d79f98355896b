package index

import (
	"iter"
	"maps"
	"slices"
)

// Get returns the values of a key, in no particular order; nil if there are none.
// They are of one moment, and never change: the caller must not change them
// either. As long as no value of the key has changed, looking again costs no more
// than a look into a map.
//
// Specification: In-memory indexing, "Index content".
func (x *Index[K, V]) Get(key K) []V {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if found := x.cells[key]; found != nil {
		return found.values()
	}
	return nil
}

// Has reports whether there is any value under the key.
func (x *Index[K, V]) Has(key K) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.cells[key] != nil
}

// Len is the number of keys.
func (x *Index[K, V]) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.cells)
}

// Keys are the keys as they are when the loop begins, in no particular order. The
// loop may take its time, and may use the index.
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
	return slices.AppendSeq(make([]K, 0, len(x.cells)), maps.Keys(x.cells))
}

// All are the keys with their values, as all of them are when the loop begins.
// The values are those of Get: read only.
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
	items := make([]item[K, V], 0, len(x.cells))
	for key, found := range x.cells {
		items = append(items, item[K, V]{key, found.values()})
	}
	return items
}

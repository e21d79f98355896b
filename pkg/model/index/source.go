package index

import (
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// source is the access of one more function to an index.
type source[K comparable, V any] struct {
	index  *Index[K, V]
	values contribution[K, V]
}

// Source returns a table through which one more function fills the index. Its values are
// kept apart from those of other functions, even of the same objects: each function
// replaces and removes only its own values. Readers see all of them together. Each source
// is claimed and released separately.
//
// Specification: In-memory indexing.
func (x *Index[K, V]) Source() handler.Table { return &source[K, V]{index: x} }

func (s *source[K, V]) Claim() error { return s.index.claim(&s.values) }

func (s *source[K, V]) Release() { s.index.release(&s.values) }

func (s *source[K, V]) Replace(owner object.Key, values any) error {
	return s.index.store(&s.values, owner, values)
}

func (s *source[K, V]) Remove(owner object.Key) { s.index.remove(&s.values, owner) }

func (s *source[K, V]) RemoveAll(gone func(owner object.Key) bool) {
	s.index.removeAll(&s.values, gone)
}

// Len returns the number of keys of the index, with the values of all its functions.
func (s *source[K, V]) Len() int { return s.index.Len() }

func (s *source[K, V]) setAvailable(available bool) { s.index.setAvailable(available) }

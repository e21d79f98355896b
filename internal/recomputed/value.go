// Package recomputed keeps values only as long as there is memory for them.
package recomputed

import (
	"sync"
	"weak"
)

// Value is a value that is computed on first use. When the garbage collector frees it, it
// is computed again on next use. So thousands of waiting handlers need no memory for what
// they can read, and one that reads often computes it once.
//
// The zero value is ready to use. It is safe for concurrent use.
type Value[T any] struct {
	mu   sync.Mutex
	kept weak.Pointer[T]
}

// Get returns the value. The function computes it, and must always return an equal one.
func (v *Value[T]) Get(compute func() T) *T {
	v.mu.Lock()
	defer v.mu.Unlock()
	if kept := v.kept.Value(); kept != nil {
		return kept
	}
	computed := new(compute())
	v.kept = weak.Make(computed)
	return computed
}

package memo

import "sync"

// Values are what is kept of one object, or of an operator as a whole. They are
// safe for concurrent use.
type Values struct {
	operator *Values // nil: these are the operator's own

	mu      sync.Mutex
	entries map[any]any // *entry[T] by *Memo[T]
}

// NewValues makes the values of one object, which are copied from those of the
// operator when they are asked for; nil: it makes those of an operator.
func NewValues(operator *Values) *Values { return &Values{operator: operator} }

// entry is the value of one memo. It has a lock of its own: one value that takes
// long to be made does not keep the others waiting, and may be made of others.
type entry[T any] struct {
	mu    sync.Mutex
	made  bool
	value T
}

// entryOf is the entry of the memo, a new one if there is none.
func entryOf[T any](v *Values, m *Memo[T]) *entry[T] {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.entries[m].(*entry[T]); ok {
		return known
	}
	if v.entries == nil {
		v.entries = map[any]any{}
	}
	added := &entry[T]{}
	v.entries[m] = added
	return added
}

// get is the value; it is made if there is none. If that panics, whoever asks next
// tries again.
func (e *entry[T]) get(create func() T) T {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.made {
		e.value = create()
		e.made = true
	}
	return e.value
}

package memo

import (
	"context"
	"sync"
)

// Values contains the values of one object, or of an operator as a whole. It is safe for
// concurrent use.
type Values struct {
	operator *Values // nil for the operator's own values

	mu      sync.Mutex
	entries map[any]any // *entry[T] by *Memo[T]
	ended   bool
	// context is made when it is asked for, and end cancels it.
	context context.Context
	end     context.CancelFunc
}

// NewValues returns the container for the values of one object, which are copied from the
// operator's values on first use. If the argument is nil, it returns an operator's
// container.
func NewValues(operator *Values) *Values { return &Values{operator: operator} }

// Context returns a context that is done when the object is gone, or when the operator does not handle it
// anymore, because another replica does, for example. Use it to let go of what a value holds, also for objects
// without deletion handlers:
//
//	context.AfterFunc(e.Memo().Context(), connection.Close)
//
// Handlers that still run can use the value meanwhile. The context of an operator's own values, and of
// arguments created in tests, is never done.
func (v *Values) Context() context.Context {
	if v == nil || v.operator == nil {
		return context.Background()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.context == nil {
		v.context, v.end = context.WithCancel(context.Background())
		if v.ended {
			v.end()
		}
	}
	return v.context
}

// End ends the context. The operator calls it when it forgets the object.
func (v *Values) End() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	if v.end != nil {
		v.end()
	}
}

// entry is the value of one memo. It has its own lock, so that creating one value does not
// block others, and can use them.
type entry[T any] struct {
	mu    sync.Mutex
	made  bool
	value T
}

// entryOf returns the entry of the memo, and creates it if necessary.
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

// get returns the value, and creates it if necessary. After a panic, the next call tries
// again.
func (e *entry[T]) get(create func() T) T {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.made {
		e.value = create()
		e.made = true
	}
	return e.value
}

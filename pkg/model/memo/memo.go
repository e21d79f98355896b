package memo

// Holder is implemented by the arguments of handlers.
type Holder interface {
	// Memo returns the values of the object. Nil means that values cannot be kept.
	Memo() *Values
}

// Memo declares one value per object. It is safe for concurrent use. Any number of
// operators can share it without seeing each other's values.
type Memo[T any] struct {
	operator func() T
	clone    func(T) T
}

// New declares a memo. The first function creates the operator's value on first use; if
// it is nil, the value is the zero value. The second function creates the value of an
// object from the operator's value on first use, usually as a shallow copy; if it is nil,
// all objects share the operator's value. Both are called once per value. They can use
// other memos, but not this one.
//
// Specification: In-memory containers, "Custom memo classes".
func New[T any](operator func() T, clone func(T) T) *Memo[T] {
	if operator == nil {
		operator = func() (zero T) { return zero }
	}
	if clone == nil {
		clone = func(value T) T { return value }
	}
	return &Memo[T]{operator, clone}
}

// Of returns the value of the current object, or the operator's value if there is no
// object. All handlers of the object get the same value. If values cannot be kept, as for
// arguments created in a test, every call returns a new value.
//
// Specification: In-memory containers, "Resource memos".
func (m *Memo[T]) Of(h Holder) T {
	values := h.Memo()
	switch {
	case values == nil:
		return m.clone(m.operator())
	case values.operator == nil:
		return entryOf(values, m).get(m.operator)
	default:
		return entryOf(values, m).get(func() T { return m.clone(entryOf(values.operator, m).get(m.operator)) })
	}
}

// Operator returns the operator's own value.
//
// Specification: In-memory containers, "Operator memos".
func (m *Memo[T]) Operator(h Holder) T {
	values := h.Memo()
	switch {
	case values == nil:
		return m.operator()
	case values.operator == nil:
		return entryOf(values, m).get(m.operator)
	default:
		return entryOf(values.operator, m).get(m.operator)
	}
}

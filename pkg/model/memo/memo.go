package memo

// Holder is what a handler is called with.
type Holder interface {
	// Memo is what is kept of the object; nil: nothing can be kept.
	Memo() *Values
}

// Memo is one thing to be remembered. It is safe for concurrent use, and shared by
// any number of operators, which do not see each other's values.
type Memo[T any] struct {
	operator func() T
	clone    func(T) T
}

// New declares a memo. The first function makes the operator's value, when it is
// first asked for; a nil one makes zero values. The second one makes the value of
// an object from that of the operator, when it is first asked for. It makes a
// copy, usually a shallow one; a nil one lets all objects share the operator's.
// Both are called once for each value, and may ask other memos, but not this one.
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

// Of is the value of the object at hand, or the operator's where there is no
// object. It is the same for all handlers of the object. Where nothing can be
// kept, as for arguments that a test has made, it is a new one at each call.
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

// Operator is the operator's own value.
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

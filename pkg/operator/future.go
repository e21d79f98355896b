package operator

import "context"

// future is a value that becomes available later. Create it with newFuture. It is safe for
// concurrent use.
type future[T any] struct {
	exists chan struct{} // closed when there is a value
	value  T
}

func newFuture[T any]() *future[T] { return &future[T]{exists: make(chan struct{})} }

// set provides the value. It can be called once.
func (f *future[T]) set(value T) {
	f.value = value
	close(f.exists)
}

// get returns the value if it is available.
func (f *future[T]) get() (value T, exists bool) {
	select {
	case <-f.exists:
		return f.value, true
	default:
		return value, false
	}
}

// wait waits for the value. It returns false if the context is done first.
func (f *future[T]) wait(ctx context.Context) (value T, exists bool) {
	select {
	case <-f.exists:
		return f.value, true
	case <-ctx.Done():
		return value, false
	}
}

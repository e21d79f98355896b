package operator

import (
	"context"
	"sync"
)

// tenure is the time in which an operator leads: none, or one. The zero value is
// ready to use.
type tenure struct {
	mu    sync.Mutex
	over  bool
	leave context.CancelFunc // asks the leader to stop; nil: nobody leads
	gone  chan struct{}      // closed when it has
	err   error              // of the leader, since it is gone
}

// begin begins it. The context ends with the given one, or when somebody ends the
// tenure; it has ended already if that was before. The leader calls leave when it
// has stopped.
func (t *tenure) begin(ctx context.Context) (leading context.Context, leave func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	if t.over {
		cancel()
	}
	gone := make(chan struct{})
	t.leave, t.gone = cancel, gone
	return ctx, func(err error) {
		cancel()
		t.err = err
		close(gone)
	}
}

// end asks the leader to stop, and waits until it has. There will be no other one.
// The error is that of the leader; nil if nobody has led.
func (t *tenure) end() error {
	t.mu.Lock()
	t.over = true
	leave, gone := t.leave, t.gone
	t.mu.Unlock()
	if leave == nil {
		return nil
	}
	leave()
	<-gone
	return t.err
}

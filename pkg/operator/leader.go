package operator

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// runLeader handles the objects until the context is done and no handler is running.
// Afterwards, the shutdown ends, in this order: the configurations of the admission
// handlers, the cleanup handlers, the entry in the peering, and the lease, which belongs to
// the manager.
//
// If the lease is lost, the manager cancels the context and returns an error without waiting,
// and waitStopped aborts the engine: handlers get no grace period.
func (r *replica) runLeader(ctx context.Context) (err error) {
	if r.settings.Replicas.LeaderElection {
		r.logger.Info("This replica is the leader and handles the objects.")
	}
	isLost := func() bool { return r.engine.IsAborted() || isLeaseLost(ctx, r.requested) }
	leading, resign := r.leadership.begin(ctx)
	defer func() { resign(err) }()
	return r.peering.during(leading, func(ctx context.Context) error {
		defer r.activities.cleanUp(ctx)
		return r.admission.maintain(ctx, isLost, r.work)
	})
}

// isLeaseLost reports whether the manager has ended the leadership although the operator was
// not asked to stop. That is not known in the manager of another program.
func isLeaseLost(manager, requested context.Context) bool {
	return manager.Err() != nil && requested != nil && requested.Err() == nil
}

// work handles the objects. It abandons handlers that do not return after they are canceled:
// nothing can stop them, and the others must not wait for them.
func (r *replica) work(ctx context.Context) error {
	grace := r.settings.Execution.GracePeriod
	done := make(chan error, 1)
	go func() { done <- r.engine.Work(ctx) }()
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(grace+reserve, func() { close(late) })
	})()
	select {
	case err := <-done:
		return err
	case <-late:
		return fmt.Errorf("some handlers have not returned after the grace period of %s, although they were canceled: they are abandoned", grace)
	}
}

// leadership is the time during which a replica leads, at most once. The zero value is ready
// to use.
type leadership struct {
	mu     sync.Mutex
	ended  bool
	cancel context.CancelFunc // asks the leader to stop; nil without a leader
	over   chan struct{}      // closed when the leader has stopped
	err    error              // the result of the leader
}

// begin starts the leadership. The context ends with the given one, or when end is called,
// even if it was called before. The leader calls resign when it has stopped.
func (l *leadership) begin(ctx context.Context) (leading context.Context, resign func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	if l.ended {
		cancel()
	}
	over := make(chan struct{})
	l.cancel, l.over = cancel, over
	return ctx, func(err error) {
		cancel()
		l.err = err
		close(over)
	}
}

// end asks the leader to stop, and waits until it has stopped. It prevents further
// leaderships. It returns the error of the leader, or nil if there was none.
func (l *leadership) end() error {
	l.mu.Lock()
	l.ended = true
	cancel, over := l.cancel, l.over
	l.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	<-over
	return l.err
}

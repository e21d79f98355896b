package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// runLeader handles the objects until the context is done and no handler is running.
// Afterwards, the shutdown ends, in this order: the configurations of the admission
// handlers, the cleanup handlers, the entry in the peering, and the lease, which belongs to
// the manager.
//
// If the lease is lost, handlers get no grace period.
func (r *replica) runLeader(ctx context.Context) (err error) {
	if r.settings.Replicas.LeaderElection {
		r.logger.Info("This replica is the leader and handles the objects.")
	}
	isLost := func() bool { return r.waitLost(ctx) }
	leading, resign := r.leadership.begin(r.abortIfLost(ctx))
	defer func() { resign(err) }()
	return r.peering.during(leading, func(ctx context.Context) error {
		defer r.activities.cleanUp(ctx)
		return r.admission.maintain(ctx, isLost, r.work)
	})
}

// errLeadershipLost is the cause of the contexts of handlers after the lease was lost.
var errLeadershipLost = errors.New("leader election lost")

// abortIfLost returns a context that ends with the manager's. If the lease is lost, it aborts
// the engine before: no handler must take that for a stop, and continue.
func (r *replica) abortIfLost(manager context.Context) context.Context {
	leading, cancel := context.WithCancel(context.WithoutCancel(manager))
	context.AfterFunc(manager, func() {
		defer cancel()
		if isLeaseLost(manager, r.requested, r.stopped.Load()) {
			r.logger.Info("The leadership is lost: all handlers are canceled, and the next leader continues their work.")
			r.engine.Abort(errLeadershipLost)
		}
	})
	return leading
}

// isLeaseLost reports whether the manager has ended the leadership without a request to
// stop. The manager of another program does not say whether there was one; but when it stops, it waits for run before it ends the leadership. It does not wait if the lease is lost,
// or if its patience is over, so that it gives the lease up.
func isLeaseLost(manager, requested context.Context, stopped bool) bool {
	return manager.Err() != nil && !stopped && (requested == nil || requested.Err() == nil)
}

// lossDelay is how much later than run the manager of another program that has lost its lease ends the
// leadership, at most, on a machine that is busy.
const lossDelay = time.Second

// waitLost reports whether the leadership is lost. The end of run can be the first sign. In the manager of
// the operator itself, nothing else ends run without a request to stop, except a failure; what belongs to
// the leadership is left to the next leader then, too.
func (r *replica) waitLost(manager context.Context) bool {
	if r.requested != nil {
		return r.engine.IsAborted() || r.settings.Replicas.LeaderElection && r.requested.Err() == nil
	}
	select {
	case <-manager.Done():
	case <-time.After(lossDelay):
	}
	return r.engine.IsAborted() || isLeaseLost(manager, r.requested, r.stopped.Load())
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
	l.cancel = cancel
	l.over = over
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
	cancel := l.cancel
	over := l.over
	l.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	<-over
	return l.err
}

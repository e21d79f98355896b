package reconcile

import (
	"context"
	"sync"
)

// activity tells whether the operator may work, or is paused because another one
// does. The zero value is active. It is safe for concurrent use.
type activity struct {
	mu      sync.Mutex
	paused  bool
	others  bool               // somebody else has worked meanwhile
	suspend context.CancelFunc // ends the work that is under way; nil: there is none
	resumed chan struct{}      // closed when the pause is over; nil: there is none
}

// SetPaused tells that the operator has to leave the objects to another one, or may
// handle them itself. A pause is as the end of the operator, but for the watches and
// for what is kept in memory: running handlers may finish within the grace period,
// daemons and timers are stopped, and the progress is persisted. Afterwards
// everything goes on from the last state of each object.
//
// It may be called at any time, from anywhere; it does not wait.
func (e *Engine) SetPaused(paused bool) {
	a := &e.activity
	a.mu.Lock()
	defer a.mu.Unlock()
	a.others = a.others || paused
	switch {
	case a.paused == paused:
	case paused:
		a.paused, a.resumed = true, make(chan struct{})
		if a.suspend != nil {
			a.suspend()
		}
	default:
		a.paused = false
		close(a.resumed)
	}
}

func (a *activity) isPaused() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.paused
}

// await waits until the operator may work, and tells whether others have worked
// until then. The context is for the work: it ends with the next pause. It is nil if
// the operator is stopped before.
func (a *activity) await(ctx context.Context) (active context.Context, end context.CancelFunc, others bool) {
	for {
		a.mu.Lock()
		if !a.paused {
			active, a.suspend = context.WithCancel(ctx)
			end, others, a.others = a.suspend, a.others, false
			a.mu.Unlock()
			return active, end, others
		}
		resumed := a.resumed
		a.mu.Unlock()
		select {
		case <-resumed:
		case <-ctx.Done():
			return nil, nil, false
		}
	}
}

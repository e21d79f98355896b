package reconcile

import (
	"context"
	"sync"
)

// pauseState says whether the operator may work, or is paused because another one does.
// The zero value is not paused. It is safe for concurrent use.
type pauseState struct {
	mu      sync.Mutex
	paused  bool
	others  bool               // another operator has worked meanwhile
	suspend context.CancelFunc // ends the work that is under way; nil: there is none
	resumed chan struct{}      // closed when the pause is over; nil: there is none
}

// SetPaused makes the operator leave the objects to another one, or handle them itself.
// A pause is like the end of the operator, except for the watches and for what is kept
// in memory: running handlers may finish within the grace period, daemons and timers
// are stopped, and the progress is persisted. Afterwards everything goes on from the
// last state of each object.
//
// It may be called at any time, from anywhere; it does not wait.
func (e *Engine) SetPaused(paused bool) {
	p := &e.pause
	p.mu.Lock()
	defer p.mu.Unlock()
	p.others = p.others || paused
	switch {
	case p.paused == paused:
	case paused:
		p.paused, p.resumed = true, make(chan struct{})
		if p.suspend != nil {
			p.suspend()
		}
	default:
		p.paused = false
		close(p.resumed)
	}
}

func (p *pauseState) isPaused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused
}

// wait waits until the operator may work, and reports whether others have worked until
// then. The context is for the work: it ends with the next pause. It is nil if the
// operator is stopped before.
func (p *pauseState) wait(ctx context.Context) (active context.Context, end context.CancelFunc, others bool) {
	for {
		p.mu.Lock()
		if !p.paused {
			active, p.suspend = context.WithCancel(ctx)
			end, others, p.others = p.suspend, p.others, false
			p.mu.Unlock()
			return active, end, others
		}
		resumed := p.resumed
		p.mu.Unlock()
		select {
		case <-resumed:
		case <-ctx.Done():
			return nil, nil, false
		}
	}
}

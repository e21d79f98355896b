package reconcile

import (
	"context"
	"sync"
)

// pauseState controls whether the operator works or is paused because another operator
// works. The zero value is not paused. It is safe for concurrent use.
type pauseState struct {
	mu      sync.Mutex
	paused  bool
	others  bool               // another operator has worked during the pause
	suspend context.CancelFunc // stops the current work; nil if there is none
	resumed chan struct{}      // closed when the pause ends; nil without a pause
}

// SetPaused pauses the operator because another one handles the objects, or resumes it. A
// pause is like a shutdown, except that the watches and the memory are kept: running
// handlers can finish within the grace period, daemons and timers are stopped, and the
// progress is persisted. After the pause, the operator continues with the latest state of
// each object.
//
// It is safe for concurrent use, and does not wait.
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

// wait waits until the operator may work, and reports whether others have worked meanwhile.
// The context ends with the next pause. It is nil if the operator is stopped before.
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

package reconcile

import (
	"sync"
	"time"
)

// gate keeps the passes waiting while indices are being filled from what has
// appeared while handlers are called already. The zero value is open. It is safe
// for concurrent use.
type gate struct {
	mu     sync.Mutex
	holds  int
	opened chan struct{} // closed with the last hold; nil: there are none
}

// hold shuts the gate until the channel is closed, or the patience is over.
func (g *gate) hold(until <-chan struct{}, or <-chan struct{}, patience time.Duration, late func()) {
	g.shut()
	go func() {
		defer g.release()
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-until:
		case <-or:
		case <-timer.C:
			late()
		}
	}()
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holds == 0 {
		g.opened = make(chan struct{})
	}
	g.holds++
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds--
	if g.holds == 0 {
		close(g.opened)
		g.opened = nil
	}
}

// wait returns when the gate is open; false, when the operator stops before.
func (g *gate) wait(stopping <-chan struct{}) bool {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened == nil {
		return true
	}
	select {
	case <-opened:
		return true
	case <-stopping:
		return false
	}
}

package watch

import (
	"sync"
	"time"
)

// barrier blocks the passes while a stream that was started late fills indices. The zero
// value is open. It is safe for concurrent use.
type barrier struct {
	mu     sync.Mutex
	holds  int
	opened chan struct{} // closed when the last hold ends; nil if there are none
}

// hold closes the barrier until one of the channels is closed or the time is over.
func (b *barrier) hold(until, or <-chan struct{}, timeout time.Duration, late func()) {
	b.addHold()
	go func() {
		defer b.removeHold()
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		select {
		case <-until:
		case <-or:
		case <-timer.C:
			late()
		}
	}()
}

func (b *barrier) addHold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holds == 0 {
		b.opened = make(chan struct{})
	}
	b.holds++
}

func (b *barrier) removeHold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds--
	if b.holds == 0 {
		close(b.opened)
		b.opened = nil
	}
}

// wait waits until the barrier is open. It returns false if the channel is closed first.
func (b *barrier) wait(stopping <-chan struct{}) bool {
	b.mu.Lock()
	opened := b.opened
	b.mu.Unlock()
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

package watch

import (
	"sync"
	"time"
)

// barrier blocks the passes while streams that were started late fill indices. The zero value is
// open. It is safe for concurrent use.
type barrier struct {
	mu     sync.Mutex
	holds  int
	opened chan struct{} // closed when the holds end; nil if there are none
	// until is the latest end of all holds that overlap. Otherwise, whoever starts streams often
	// enough, as by creating namespaces, could keep the barrier closed.
	until time.Time
}

// hold closes the barrier until a stream is listed, stopped, or refused, or until the time is over
// since the first of the holds that overlap.
func (b *barrier) hold(listed, stopped, refused <-chan struct{}, timeout time.Duration, late func()) {
	left := b.addHold(timeout)
	go func() {
		defer b.removeHold()
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-listed:
		case <-stopped:
		case <-refused:
		case <-timer.C:
			late()
		}
	}()
}

func (b *barrier) addHold(timeout time.Duration) (left time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holds == 0 {
		b.opened = make(chan struct{})
		b.until = time.Now().Add(timeout)
	}
	b.holds++
	return time.Until(b.until)
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

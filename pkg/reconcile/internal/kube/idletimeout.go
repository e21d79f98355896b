package kube

import (
	"io"
	"sync/atomic"
	"time"
)

// alarm ends a watch that brings nothing for too long: its connection may be dead,
// with nobody to tell. The watch ends like one that the server has ended, so that
// it is begun again where it was.
type idleTimeout struct {
	body    io.Closer
	limit   time.Duration
	timer   *time.Timer // nil: it may be silent for ever
	expired atomic.Bool
}

func newIdleTimeout(idle time.Duration, answer io.Closer) *idleTimeout {
	a := &idleTimeout{body: answer, limit: idle}
	if idle > 0 {
		a.timer = time.AfterFunc(idle, a.expire)
	}
	return a
}

// ring unblocks whoever reads.
func (a *idleTimeout) expire() {
	a.expired.Store(true)
	_ = a.body.Close()
}

// put puts the alarm off, since something has come.
func (a *idleTimeout) reset() {
	if a.timer != nil {
		a.timer.Reset(a.limit)
	}
}

// explain is why nothing can be read any more.
func (a *idleTimeout) eofIfExpired(err error) error {
	if a.expired.Load() {
		return io.EOF
	}
	return err
}

// Close ends the watch.
func (a *idleTimeout) Close() error {
	if a.timer != nil {
		a.timer.Stop()
	}
	return a.body.Close()
}

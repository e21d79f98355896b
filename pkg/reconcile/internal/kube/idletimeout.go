package kube

import (
	"io"
	"sync/atomic"
	"time"
)

// idleTimeout ends a watch that delivers nothing for too long, because its connection may be
// dead without notice. The watch ends as if the server had ended it, so that it can be
// resumed.
type idleTimeout struct {
	body    io.Closer
	limit   time.Duration
	timer   *time.Timer // nil without a limit
	expired atomic.Bool
}

// newIdleTimeout starts the timeout. Without a positive limit, it never expires.
func newIdleTimeout(limit time.Duration, body io.Closer) *idleTimeout {
	t := &idleTimeout{body: body, limit: limit}
	if limit > 0 {
		t.timer = time.AfterFunc(limit, t.expire)
	}
	return t
}

// expire unblocks the reader.
func (t *idleTimeout) expire() {
	t.expired.Store(true)
	_ = t.body.Close()
}

// reset restarts the timeout after data has arrived.
func (t *idleTimeout) reset() {
	if t.timer != nil {
		t.timer.Reset(t.limit)
	}
}

// eofIfExpired returns io.EOF instead of the error if the timeout has caused it.
func (t *idleTimeout) eofIfExpired(err error) error {
	if t.expired.Load() {
		return io.EOF
	}
	return err
}

// Close ends the watch.
func (t *idleTimeout) Close() error {
	if t.timer != nil {
		t.timer.Stop()
	}
	return t.body.Close()
}

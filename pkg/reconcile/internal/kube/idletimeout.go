package kube

import (
	"io"
	"sync/atomic"
	"time"
)

// alarm ends a watch that brings nothing for too long: its connection may be dead,
// with nobody to tell. The watch ends like one that the server has ended, so that
// it is begun again where it was.
type alarm struct {
	answer io.Closer
	idle   time.Duration
	timer  *time.Timer // nil: it may be silent for ever
	rung   atomic.Bool
}

func newAlarm(idle time.Duration, answer io.Closer) *alarm {
	a := &alarm{answer: answer, idle: idle}
	if idle > 0 {
		a.timer = time.AfterFunc(idle, a.ring)
	}
	return a
}

// ring unblocks whoever reads.
func (a *alarm) ring() {
	a.rung.Store(true)
	_ = a.answer.Close()
}

// put puts the alarm off, since something has come.
func (a *alarm) put() {
	if a.timer != nil {
		a.timer.Reset(a.idle)
	}
}

// explain is why nothing can be read any more.
func (a *alarm) explain(err error) error {
	if a.rung.Load() {
		return io.EOF
	}
	return err
}

// Close ends the watch.
func (a *alarm) Close() error {
	if a.timer != nil {
		a.timer.Stop()
	}
	return a.answer.Close()
}

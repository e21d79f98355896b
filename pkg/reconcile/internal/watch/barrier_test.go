package watch

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestBarrierOpensWhenTheIndicesAreFilled(t *testing.T) {
	tests := map[string]struct {
		open func(listed, left, stopping chan struct{})
		want bool // the passes begin
		late bool
	}{
		"the objects are listed": {func(listed, _, _ chan struct{}) { close(listed) }, true, false},
		"the stream is stopped":  {func(_, left, _ chan struct{}) { close(left) }, true, false},
		"it takes too long":      {func(_, _, _ chan struct{}) {}, true, true},
		"the operator stops":     {func(_, _, stopping chan struct{}) { close(stopping) }, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b barrier
				var late atomic.Bool
				listed, left, stopping := make(chan struct{}), make(chan struct{}), make(chan struct{})
				began := make(chan bool, 1)
				b.hold(listed, left, time.Minute, func() { late.Store(true) })
				go func() { began <- b.wait(stopping) }()
				synctest.Wait()
				if len(began) > 0 {
					t.Fatal("it did not wait")
				}
				test.open(listed, left, stopping)
				if got := <-began; got != test.want || late.Load() != test.late {
					t.Errorf("got %v, late: %v", got, late.Load())
				}
				time.Sleep(time.Hour) // until the barrier is open
				if !b.wait(nil) {
					t.Error("the barrier is closed")
				}
			})
		})
	}
}

func TestBarrierOpensWithTheLastHold(t *testing.T) {
	var b barrier
	b.addHold()
	b.addHold()
	b.removeHold()
	stopped := make(chan struct{})
	close(stopped)
	if b.wait(stopped) {
		t.Error("the barrier is open")
	}
	b.removeHold()
	if !b.wait(stopped) {
		t.Error("the barrier is closed")
	}
}

package watch

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestBarrierOpensWhenTheIndicesAreFilled(t *testing.T) {
	tests := map[string]struct {
		open func(listed, left, refused, stopping chan struct{})
		want bool // the passes begin
		late bool
	}{
		"the objects are listed":  {func(listed, _, _, _ chan struct{}) { close(listed) }, true, false},
		"the stream is stopped":   {func(_, left, _, _ chan struct{}) { close(left) }, true, false},
		"a permission is missing": {func(_, _, refused, _ chan struct{}) { close(refused) }, true, false},
		"it takes too long":       {func(_, _, _, _ chan struct{}) {}, true, true},
		"the operator stops":      {func(_, _, _, stopping chan struct{}) { close(stopping) }, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b barrier
				var late atomic.Bool
				listed, left, refused, stopping := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
				began := make(chan bool, 1)
				b.hold(listed, left, refused, time.Minute, func() { late.Store(true) })
				go func() { began <- b.wait(stopping) }()
				synctest.Wait()
				if len(began) > 0 {
					t.Fatal("it did not wait")
				}
				test.open(listed, left, refused, stopping)
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
	b.addHold(time.Minute)
	b.addHold(time.Minute)
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

// Streams that start again and again must not keep all handlers waiting.
func TestOverlappingHoldsHaveOneEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b barrier
		stopped := make(chan struct{})
		hold := func() { b.hold(nil, stopped, nil, 10*time.Second, func() {}) }
		hold()
		go func() {
			for range 10 {
				time.Sleep(4 * time.Second)
				hold()
			}
		}()
		began := time.Now()
		if open := b.wait(nil); !open || time.Since(began) != 10*time.Second {
			t.Errorf("got %t after %s", open, time.Since(began))
		}
		time.Sleep(time.Hour)
	})
}

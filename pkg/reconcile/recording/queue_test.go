package recording

import (
	"runtime"
	"slices"
	"testing"
)

// Whoever adds functions does not wait for them, and code that ends the goroutine does not stop the others.
func TestQueueRunsOneAfterTheOther(t *testing.T) {
	var q queue
	<-q.emptied()
	var order []int
	gate := make(chan struct{})
	q.add(func() { <-gate })
	for i := range 5 {
		q.add(func() {
			order = append(order, i)
			if i == 2 {
				runtime.Goexit()
			}
		})
	}
	close(gate)
	<-q.emptied()
	if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
		t.Errorf("got %v", order)
	}
	q.add(func() { order = nil })
	<-q.emptied()
	if order != nil {
		t.Error("nothing runs after a rest")
	}
}

package recomputed

import (
	"runtime"
	"testing"
)

func TestValueIsComputedAgainAfterItWasFreed(t *testing.T) {
	var v Value[map[string]int]
	computed := 0
	compute := func() map[string]int {
		computed++
		return map[string]int{"a": 1}
	}
	used := v.Get(compute)
	runtime.GC()
	if v.Get(compute) != used || computed != 1 {
		t.Errorf("a value that is used was computed %d times", computed)
	}
	runtime.KeepAlive(used)
	runtime.GC()
	if got := *v.Get(compute); got["a"] != 1 || computed != 2 {
		t.Errorf("got %v, computed %d times", got, computed)
	}
}

func TestValueIsUsableAfterAPanic(t *testing.T) {
	var v Value[int]
	func() {
		defer func() { _ = recover() }()
		v.Get(func() int { panic("oops") })
	}()
	if got := *v.Get(func() int { return 1 }); got != 1 {
		t.Errorf("got %d", got)
	}
}

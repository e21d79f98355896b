package index

import (
	"fmt"
	"testing"
)

// sizes are numbers of objects. The benchmarks must not get slower with them, except for
// the effects of larger maps on the processor's caches.
var sizes = []int{1000, 10_000, 100_000}

func BenchmarkGet(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			x := New[string, string]()
			fill(b, x, size)
			x.Get("all") // creates the view of all values
			for b.Loop() {
				if len(x.Get("all")) != size || len(x.Get("500")) != 1 {
					b.Fatal("values are missing")
				}
			}
		})
	}
}

// The object has two keys: its own key, which changes, and the common key.
func BenchmarkReplace(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			x := New[string, string]()
			fill(b, x, size)
			versions := []map[string]string{{"all": "x", "x": ""}, {"all": "y", "y": ""}}
			for n := 0; b.Loop(); n++ {
				_ = x.Replace(owner("500"), versions[n%2])
			}
		})
	}
}

func BenchmarkRemoveAndAdd(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			x := New[string, string]()
			fill(b, x, size)
			values := map[string]string{"all": "x", "x": ""}
			for b.Loop() {
				x.Remove(owner("500"))
				_ = x.Replace(owner("500"), values)
			}
		})
	}
}

// This test checks with machine-independent numbers that no operation copies data whose
// size depends on the index.
func TestAllocationsDoNotGrowWithTheIndex(t *testing.T) {
	versions := []map[string]string{{"all": "x", "x": ""}, {"all": "y", "y": ""}}
	tests := map[string]struct {
		act  func(x *Index[string, string], n int)
		free bool
	}{
		"a look at many values":          {func(x *Index[string, string], _ int) { x.Get("all") }, true},
		"a look at one value":            {func(x *Index[string, string], _ int) { x.Get("500") }, true},
		"a look at none":                 {func(x *Index[string, string], _ int) { x.Get("nothing") }, true},
		"an update":                      {func(x *Index[string, string], n int) { _ = x.Replace(owner("500"), versions[n%2]) }, false},
		"an update that changes nothing": {func(x *Index[string, string], _ int) { _ = x.Replace(owner("500"), versions[0]) }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			small, large := allocations(t, sizes[0], test.act), allocations(t, sizes[1], test.act)
			if small != large || (test.free && small > 0) {
				t.Errorf("got %v allocations with %d objects, and %v with %d", small, sizes[0], large, sizes[1])
			}
		})
	}
}

func allocations(t *testing.T, objects int, act func(x *Index[string, string], n int)) float64 {
	t.Helper()
	x := New[string, string]()
	fill(t, x, objects)
	act(x, 0)
	n := 0
	return testing.AllocsPerRun(100, func() { n++; act(x, n) })
}

// Most events of an object change no indexed values. The view must stay valid, or every
// lookup after an event would copy all values.
func TestUnchangedValuesAreNotCopiedAgain(t *testing.T) {
	x := New[string, string]()
	fill(t, x, 1000)
	before := x.Get("all")
	_ = x.Replace(owner("500"), map[string]string{"all": "500", "500": "other"})
	if after := x.Get("all"); &before[0] != &after[0] {
		t.Error("unchanged values of a key were copied")
	}
}

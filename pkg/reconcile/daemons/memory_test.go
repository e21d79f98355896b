//go:build !race

// The race detector needs additional memory.

package daemons_test

import (
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
)

// Waiting handlers need little memory, including the group and, for a daemon, its
// goroutine and the values of its context.
func TestMemoryOfWaitingHandlers(t *testing.T) {
	const objects = 2000
	handlers := waitingHandlers(t)
	tests := map[string]struct {
		handlers []*handler.Declaration
		limit    int64
	}{
		"a waiting timer":  {handlers[:1], 1 << 10},
		"a waiting daemon": {handlers[1:], 8 << 10},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host, supervisor := newDiscardHost(), daemons.New(daemons.Options{})
				before := used()
				for range objects {
					supervisor.NewGroup(host).Sync(test.handlers, true)
					synctest.Wait() // one pass after another
				}
				each := (used() - before) / objects
				t.Logf("%s needs %d bytes", name, each)
				if each > test.limit {
					t.Errorf("%s needs %d bytes, more than %d", name, each, test.limit)
				}
				supervisor.Stop(t.Context())
			})
		})
	}
}

// A daemon waits on a stack of two kilobytes, the smallest one, also if its own frames take 160
// bytes. The runtime doubles a stack as soon as the frames of the calls do not fit in.
func TestDaemonsWaitOnSmallStacks(t *testing.T) {
	const objects, smallest = 2000, 2 << 10
	synctest.Test(t, func(t *testing.T) {
		// After a collection, the runtime begins goroutines with what the others needed.
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		host, supervisor := newDiscardHost(), daemons.New(daemons.Options{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range objects {
			supervisor.NewGroup(host).Sync(waitingHandlers(t)[1:], true)
			synctest.Wait()
		}
		runtime.ReadMemStats(&after)
		each := (after.StackInuse - before.StackInuse) / objects
		t.Logf("a stack takes %d bytes", each)
		if each > smallest*3/2 {
			t.Errorf("a stack takes %d bytes, more than %d", each, smallest)
		}
		supervisor.Stop(t.Context())
	})
}

// used returns the memory that the process uses when all goroutines are blocked.
func used() int64 {
	synctest.Wait()
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

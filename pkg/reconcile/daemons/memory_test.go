//go:build !race

// The race detector takes memory of its own.

package daemons_test

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
)

// Whoever waits costs little memory, everything included: the group, and for a
// daemon also its goroutine and what its context holds.
func TestMemoryOfWaiting(t *testing.T) {
	const objects = 2000
	handlers := waitingHandlers(t)
	tests := map[string]struct {
		handlers []*handler.Declaration
		limit    int64
	}{
		"a timer":  {handlers[:1], 1 << 10},
		"a daemon": {handlers[1:], 8 << 10},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host, supervisor := newQuiet(), daemons.New(daemons.Options{})
				before := used()
				for range objects {
					supervisor.NewGroup(host).Sync(test.handlers, true)
					synctest.Wait() // passes come one after the other
				}
				each := (used() - before) / objects
				t.Logf("%s that waits: %d bytes", name, each)
				if each > test.limit {
					t.Errorf("%s that waits costs %d bytes, more than %d", name, each, test.limit)
				}
				supervisor.Stop(t.Context())
			})
		})
	}
}

// used is the memory of the process that is in use when everybody waits.
func used() int64 {
	synctest.Wait()
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

package daemons_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
)

// A handler that is retried endlessly without a delay takes its share of the only
// processor, and does not starve other goroutines.
func TestRetriesWithoutDelayDoNotStarveOthers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	supervisor := daemons.New(daemons.Options{})
	var calls atomic.Int64
	d := (&world{t: t}).timer("a", func(context.Context, *handler.Call) error {
		calls.Add(1)
		return handler.Temporary(errNetwork, 0)
	})
	group := supervisor.NewGroup(newDiscardHost())
	group.Sync([]*handler.Declaration{d}, true)
	for range 1000 {
		runtime.Gosched()
	}
	if n := calls.Load(); n == 0 || n > 100_000 {
		t.Errorf("%d calls while other goroutines had a thousand turns", n)
	}
	group.Stop(stop.Deleted)
	supervisor.Stop(t.Context())
}

package reconcile

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// journal records the calls of handlers.
type journal struct {
	mu            sync.Mutex
	began, ended  []string
	running, most int
	interrupted   int
}

func (j *journal) begin(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.began = append(j.began, name)
	j.running++
	j.most = max(j.most, j.running)
}

func (j *journal) end(name string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running--
	if err != nil {
		j.interrupted++
		return
	}
	j.ended = append(j.ended, name)
}

// completed returns the number of calls that have ended, also while others end.
func (j *journal) completed() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.ended)
}

// waiting returns a handler that waits.
func (j *journal) waiting(duration time.Duration) handler.Function {
	return handlertest.Function(j.waits(duration))
}

// waits returns the function of such a handler.
func (j *journal) waits(duration time.Duration) func(context.Context, *handler.Call) error {
	return func(ctx context.Context, c *handler.Call) (err error) {
		j.begin(c.Name())
		defer func() { j.end(c.Name(), err) }()
		select {
		case <-time.After(duration):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func names(count int) (all []string) {
	for i := range count {
		all = append(all, fmt.Sprintf("object-%04d", i))
	}
	return all
}

func (c *cluster) createAll(names []string) {
	for _, name := range names {
		c.create("as", name)
		settle(time.Microsecond) // the order of the objects is certain
	}
}

// settle lets time pass.
func settle(duration time.Duration) {
	time.Sleep(duration)
	synctest.Wait()
}

func (c *cluster) expectHandled(plural string, names ...string) {
	c.t.Helper()
	for _, name := range names {
		if !c.handled(plural, name) {
			c.t.Errorf("%s %s is not handled", plural, name)
		}
	}
}

func fewWorkers(c *Config) { c.Settings.Execution.Workers = 2 }

// Two workers need a second for the writes of the first resource.
func TestManyObjectsDoNotDelayOtherResources(t *testing.T) {
	var many, one journal
	inCluster(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("as"), many.waiting(0), handler.ID("fn")))
		r.Add(handler.Create(selector.New("bs"), one.waiting(0), handler.ID("fn")))
	}, func(t *testing.T, c *cluster) {
		for _, name := range names(2000) {
			c.create("as", name)
		}
		settle(10 * time.Millisecond)
		c.create("bs", "one")
		settle(10 * time.Millisecond)
		c.expectHandled("bs", "one")
		if before := many.completed(); before > 1000 {
			t.Errorf("%d objects were handled before", before)
		}
		settle(time.Minute)
		c.expectHandled("as", names(2000)...)
	}, fewWorkers)
}

func TestStateCountsCalls(t *testing.T) {
	var j journal
	inCluster(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("as"), j.waiting(time.Minute), handler.ID("fn"), handler.Limit(2)))
	}, func(t *testing.T, c *cluster) {
		c.createAll(names(5))
		settle(10 * time.Second)
		got := c.engine.State()
		if want := (metrics.Calls{Running: 2, Waiting: 3}); got.Calls.Running != want.Running || got.Calls.Waiting != want.Waiting || got.Calls.Longest < 10*time.Second {
			t.Errorf("got %+v", got.Calls)
		}
		if got.Queue.Busy != 0 || got.Queue.Awaited != 0 || got.Queue.Workers != 2 {
			t.Errorf("got %+v", got.Queue)
		}
	}, fewWorkers)
}

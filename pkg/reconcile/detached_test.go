package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestPauseWaitsForRunningHandlers(t *testing.T) {
	var j journal
	inCluster(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("as"), j.waiting(10*time.Second), handler.ID("fn"), handler.Limit(2)))
	}, func(t *testing.T, c *cluster) {
		c.createAll("as", names(3))
		settle(time.Second)
		c.engine.SetPaused(true)
		settle(time.Minute)
		c.expectHandled("as", names(2)...)
		if len(j.began) != 2 || c.handled("as", "object-0002") {
			t.Errorf("called during the pause: %v", j.began)
		}
		c.engine.SetPaused(false)
		settle(time.Minute)
		c.expectHandled("as", names(3)...)
		if !slices.Equal(j.ended, names(3)) || j.interrupted != 0 {
			t.Errorf("called %v, interrupted %d", j.ended, j.interrupted)
		}
	})
}

func TestPauseDuringACheckpointCallsNoOtherHandler(t *testing.T) {
	var j journal
	inCluster(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("as"), j.waiting(2*time.Second), handler.ID("a")))
		r.Add(handler.Create(selector.New("as"), j.waiting(2*time.Second), handler.ID("b")))
	}, func(t *testing.T, c *cluster) {
		c.latency = 10 * time.Second
		c.create("as", "one")
		settle(5 * time.Second) // the outcome of the first handler is being written
		c.engine.SetPaused(true)
		settle(time.Minute)
		if len(j.began) != 1 || len(c.writes) != 1 {
			t.Errorf("called %d handlers, and %d writes", len(j.began), len(c.writes))
		}
		c.engine.SetPaused(false)
		settle(time.Minute)
		c.expectHandled("as", "one")
		if len(j.ended) != 2 || j.interrupted != 0 {
			t.Errorf("called %v, interrupted %d", j.ended, j.interrupted)
		}
	})
}

func TestLostLeaseCancelsRunningHandlers(t *testing.T) {
	var j journal
	inCluster(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("as"), j.waiting(time.Hour), handler.ID("fn")))
	}, func(t *testing.T, c *cluster) {
		c.createAll("as", names(3))
		settle(time.Second)
		c.engine.Abort(errors.New("the lease is lost"))
		if took := c.shutDown(); took > 0 || j.interrupted != 3 || len(c.writes) != 0 {
			t.Errorf("it took %v, interrupted %d, writes %v", took, j.interrupted, c.writes)
		}
	})
}

// Of 2,000 handlers that wait, half return successfully when they are canceled.
func TestShutdownLosesNothing(t *testing.T) {
	const objects = 2000
	var j journal
	inCluster(t, func(r *registry.Registry) {
		stubborn := func(ctx context.Context, c *handler.Change) error {
			err := j.waiting(time.Hour).Change(ctx, c)
			if c.Name() < names(objects/2 + 1)[objects/2] {
				c.SetResult("done")
				return nil
			}
			return err
		}
		r.Add(handler.Create(selector.New("as"), handler.Function{Change: stubborn}, handler.ID("fn")))
	}, func(t *testing.T, c *cluster) {
		c.createAll("as", names(objects))
		settle(time.Minute)
		if j.running != objects {
			t.Fatalf("%d handlers wait", j.running)
		}
		took := c.shutDown()
		if took > c.engine.Settings.Execution.GracePeriod {
			t.Errorf("it took %v", took)
		}
		c.expectHandled("as", names(objects/2)...)
		if len(c.writes) != objects/2 {
			t.Errorf("%d writes", len(c.writes))
		}
	}, func(c *Config) { c.REST.QPS, c.REST.Burst = 200, 400 })
}

func TestPanicOfADetachedPassIsRetried(t *testing.T) {
	var j journal
	inCluster(t, func(r *registry.Registry) {
		// A slot that a panic leaves behind would block all others.
		r.Add(handler.Create(selector.New("as"), j.waiting(time.Second), handler.ID("fn"), handler.Limit(1)))
	}, func(t *testing.T, c *cluster) {
		c.create("as", "one")
		settle(time.Minute)
		c.expectHandled("as", "one")
		if len(j.ended) != 1 {
			t.Errorf("called %v", j.ended)
		}
	}, func(c *Config) {
		panics := 3
		c.Context = func(ctx context.Context, _ CallContext) context.Context {
			if panics--; panics >= 0 {
				panic("oops")
			}
			return ctx
		}
	})
}

package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestPauseWaitsForRunningHandlers(t *testing.T) {
	var j journal
	inCluster(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("as"), j.waiting(10*time.Second), handler.ID("fn"), handler.Limit(2)))
	}, func(t *testing.T, c *cluster) {
		c.createAll(names(3))
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
		c.createAll(names(3))
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
		stubborn := func(ctx context.Context, c *handler.Call) error {
			err := j.waits(time.Hour)(ctx, c)
			if c.Name() < names(objects/2 + 1)[objects/2] {
				c.SetResult("done")
				return nil
			}
			return err
		}
		r.Add(handler.Create(selector.New("as"), handlertest.Function(stubborn), handler.ID("fn")))
	}, func(t *testing.T, c *cluster) {
		c.createAll(names(objects))
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

// stubborn is a handler that ignores its context until it is released.
type stubborn struct{ release chan struct{} }

func (s *stubborn) function(j *journal) handler.Function {
	return handlertest.Function(func(_ context.Context, c *handler.Call) error {
		j.begin(c.Name())
		defer j.end(c.Name(), nil)
		if c.Name() == "stuck" {
			<-s.release
		}
		return nil
	})
}

func TestPauseLetsGoOfHandlersThatIgnoreTheirContext(t *testing.T) {
	var j journal
	var ticks atomic.Int32
	var s stubborn
	var lines journalLines
	inCluster(t, func(r *registry.Registry) {
		s.release = make(chan struct{}) // of this bubble
		r.Add(handler.Create(selector.New("as"), s.function(&j), handler.ID("fn")))
		r.Add(handler.Update(selector.New("as"), s.function(&j), handler.ID("up")))
		r.Add(handler.Timer(selector.New("as"), handlertest.Function(func(context.Context, *handler.Call) error {
			ticks.Add(1)
			return nil
		}), handler.ID("tick"), handler.Interval(time.Hour)))
	}, func(t *testing.T, c *cluster) {
		c.create("as", "stuck")
		settle(time.Second)
		for range 3 { // each pause waits for the grace period of the call at most
			c.engine.SetPaused(true)
			settle(2 * time.Minute)
			c.engine.SetPaused(false)
			settle(time.Minute)
		}
		before := ticks.Load()
		c.create("as", "other")
		settle(24 * time.Hour)
		c.expectHandled("as", "other")
		if ticked := ticks.Load() - before; ticked < 24 {
			t.Errorf("the timer of the other object was called %d times in a day", ticked)
		}
		if got := c.engine.State().Calls; got.Abandoned != 1 || got.Running != 1 {
			t.Errorf("got %+v", got)
		}
		if got := lines.count("has not returned although it was canceled for a pause"); got != 1 {
			t.Errorf("it was said %d times", got)
		}
		c.change("as", "stuck", map[string]any{"size": int64(1)})
		settle(time.Hour)
		if c.handled("as", "stuck") || len(j.began) != 2 {
			t.Errorf("the object is not locked: called %v", j.began)
		}
		close(s.release)
		settle(time.Hour)
		c.expectHandled("as", "stuck")
		if !slices.Equal(j.began, []string{"stuck", "other", "stuck"}) || c.engine.State().Calls.Abandoned != 0 {
			t.Errorf("called %v, then %+v", j.began, c.engine.State().Calls)
		}
		if got := ticks.Load() - before; got < 25 {
			t.Errorf("the timers were called %d times", got)
		}
	}, func(c *Config) { c.Logger = lines.logger() })
}

// An operator that stops during the wait leaves it to its caller how long to wait.
func TestPauseThatBecomesAShutdownWaitsForHandlers(t *testing.T) {
	var j journal
	var s stubborn
	inCluster(t, func(r *registry.Registry) {
		s.release = make(chan struct{}) // of this bubble
		r.Add(handler.Create(selector.New("as"), s.function(&j), handler.ID("fn")))
	}, func(t *testing.T, c *cluster) {
		c.create("as", "stuck")
		settle(time.Second)
		c.engine.SetPaused(true)
		settle(time.Second)
		go func() {
			time.Sleep(time.Hour)
			close(s.release)
		}()
		if took := c.shutDown(); took < time.Hour {
			t.Errorf("it took %s", took)
		}
	})
}

// journalLines counts log lines.
type journalLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *journalLines) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{})
}

func (l *journalLines) count(text string) (count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			count++
		}
	}
	return count
}

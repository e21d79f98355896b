package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

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

func (c *cluster) createAll(plural string, names []string) {
	for _, name := range names {
		c.create(plural, name)
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

func TestWaitingHandlersHoldUpNothing(t *testing.T) {
	var slow, fast journal
	inCluster(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("slows"), slow.waiting(10*time.Second), handler.ID("fn")))
		r.Add(handler.Create(selector.New("fasts"), fast.waiting(0), handler.ID("fn")))
	}, func(t *testing.T, c *cluster) {
		c.createAll("slows", names(100))
		settle(time.Second)
		c.create("fasts", "one")
		settle(100 * time.Millisecond)
		c.expectHandled("fasts", "one")
		settle(9 * time.Second)
		c.expectHandled("slows", names(100)...)
		if slow.most != 100 {
			t.Errorf("%d handlers ran at the same time", slow.most)
		}
	}, fewWorkers)
}

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

func TestLimitServesInOrder(t *testing.T) {
	var j journal
	inCluster(t, func(r *registry.Registry) {
		// The time before the first call does not count.
		r.Add(handler.Create(selector.New("as"), j.waiting(10*time.Second), handler.ID("fn"), handler.Limit(5), handler.Timeout(15*time.Second)))
	}, func(t *testing.T, c *cluster) {
		c.createAll("as", names(20))
		settle(25 * time.Second)
		for name, want := range map[string]int{"object-0000": 1, "object-0009": 1, "object-0010": 0, "object-0019": 0} {
			if got := c.writesOf(name); got != want {
				t.Errorf("%d writes to %s", got, name)
			}
		}
		settle(16 * time.Second)
		c.expectHandled("as", names(20)...)
		for group := range slices.Chunk(j.began, 5) {
			slices.Sort(group) // they begin at the same time
		}
		if j.most != 5 || !slices.Equal(j.began, names(20)) || c.writesOf("object-0019") != 1 {
			t.Errorf("%d at the same time, %d writes, in the order %v", j.most, c.writesOf("object-0019"), j.began)
		}
	}, fewWorkers)
}

func TestOtherHandlersDoNotWaitForASlot(t *testing.T) {
	var limited, free journal
	inCluster(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("as"), limited.waiting(time.Minute), handler.ID("limited"), handler.Limit(1)))
		r.Add(handler.Create(selector.New("as"), free.waiting(0), handler.ID("free")))
	}, func(t *testing.T, c *cluster) {
		c.create("as", "first")
		settle(time.Second)
		c.create("as", "second")
		settle(time.Second)
		if !slices.Equal(free.ended, []string{"second"}) || c.writesOf("second") != 1 || c.handled("as", "second") {
			t.Errorf("called %v, %d writes", free.ended, c.writesOf("second"))
		}
		settle(3 * time.Minute)
		c.expectHandled("as", "first", "second")
		if !slices.Equal(limited.ended, []string{"first", "second"}) || !slices.Equal(free.ended, []string{"second", "first"}) {
			t.Errorf("called %v, %v", limited.ended, free.ended)
		}
	})
}

func TestSlotIsPassedOnIfItsObjectDoesNotNeedIt(t *testing.T) {
	ends := map[string]func(c *cluster){
		"the object is gone":         func(c *cluster) { c.remove("as", "second") },
		"the handler does not match": func(c *cluster) { c.change("as", "second", map[string]any{"skip": true}) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			var j journal
			matches := handlertest.When(func(args *handler.Call) bool { return !args.Body().Spec().Has("skip") })
			inCluster(t, func(r *registry.Registry) {
				r.Add(handler.Create(selector.New("as"), j.waiting(time.Minute), handler.ID("fn"), handler.Limit(1), matches))
			}, func(t *testing.T, c *cluster) {
				c.createAll("as", []string{"first", "second", "third"})
				settle(time.Second)
				end(c)
				settle(2 * time.Minute)
				c.expectHandled("as", "first", "third")
				if !slices.Equal(j.ended, []string{"first", "third"}) {
					t.Errorf("called %v", j.ended)
				}
			})
		})
	}
}

func TestNestedLimitsDoNotBlockEachOther(t *testing.T) {
	var parents, children journal
	inCluster(t, func(r *registry.Registry) {
		parent := func(ctx context.Context, c *handler.Call) (err error) {
			parents.begin(c.Name())
			defer func() { parents.end(c.Name(), err) }()
			for _, id := range []string{"x", "y"} {
				handlertest.Subhandler(c, id, children.waits(10*time.Second), handler.Limit(1))
			}
			return c.Execute(ctx)
		}
		r.Add(handler.Create(selector.New("as"), handlertest.Function(parent), handler.ID("parent"), handler.Limit(2)))
	}, func(t *testing.T, c *cluster) {
		c.createAll("as", names(6))
		settle(5 * time.Minute)
		c.expectHandled("as", names(6)...)
		if parents.most > 2 || children.most > 1 || len(children.ended) != 12 {
			t.Errorf("%d parents and %d children at the same time; %d children", parents.most, children.most, len(children.ended))
		}
		for _, name := range names(6) {
			if got := c.writesOf(name); got > 4 { // at most one for each child, and one when the parent must wait
				t.Errorf("%d writes to %s", got, name)
			}
		}
	}, fewWorkers, func(c *Config) { c.Settings.Execution.MaxCalls = 3 })
}

func TestLongCallIsReportedOnce(t *testing.T) {
	var j journal
	w := &witness{}
	inCluster(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("as"), j.waiting(time.Hour), handler.ID("fn")))
		r.Add(handler.Create(selector.New("bs"), j.waiting(9*time.Minute), handler.ID("fn")))
	}, func(t *testing.T, c *cluster) {
		c.create("as", "one")
		c.create("bs", "two")
		settle(30 * time.Minute)
		w.log = slices.DeleteFunc(w.log, func(line string) bool { return !strings.Contains(line, "running for") })
		if len(w.log) != 1 || !strings.Contains(w.log[0], "more than 10 minutes") || !strings.Contains(w.log[0], "one") {
			t.Errorf("got %q", w.log)
		}
	}, func(c *Config) {
		c.Logger = funcr.New(func(_, args string) { w.log = append(w.log, args) }, funcr.Options{})
	})
}

func TestStateCountsCalls(t *testing.T) {
	var j journal
	inCluster(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("as"), j.waiting(time.Minute), handler.ID("fn"), handler.Limit(2)))
	}, func(t *testing.T, c *cluster) {
		c.createAll("as", names(5))
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

//go:build !race

// The race detector needs additional memory.

package reconcile

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// company describes the background state of an idle object in memory.
type company struct {
	declare func(r *registry.Registry, called func())
	// calls is the number of calls per object to wait for.
	calls int
	limit int64 // bytes per object
}

func TestIdleObjectWithHandlersTakesLittleMemory(t *testing.T) {
	if !alone(t) {
		return
	}
	alone := idle(t, company{})
	tests := map[string]company{
		"a timer that was called":         {timed, 1, 1024},
		"a daemon":                        {accompanied, 1, 6500},
		"a daemon that matches others":    {accompaniedElsewhere, 0, 100},
		"an index with one key":           {indexed, 1, 500},
		"a memo of the indexing function": {remembering, 1, 700},
		"a handler of children":           {parental, 0, 600},
		"a handler of Ensure":             {ensuring(nil), 0, 700},
		"a handler of Ensure of an index": {ensuring(index.New[string, string]()), 0, 900},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			each := idle(t, test) - alone
			t.Logf("%s: %d bytes more than the %d of an object alone", name, each, alone)
			if each > test.limit {
				t.Errorf("%s takes %d bytes, more than %d", name, each, test.limit)
			}
		})
	}
}

// The object is not decoded for a call: most handlers read a field or two, or nothing.
func TestCallsInTheBackgroundAreCheap(t *testing.T) {
	const limit = 20 // allocations
	e, b := attended(t)
	d := e.engine.resources.get(b.key.Resource).background[0]
	if allocations := testing.AllocsPerRun(100, func() { b.Prepare(t.Context(), d) }); allocations > limit {
		t.Errorf("%.0f allocations to prepare a call, more than %d", allocations, limit)
	}
}

// Only the watch keeps the object in memory.
func TestBackgroundSharesTheVersionOfTheWatch(t *testing.T) {
	e, b := attended(t)
	now := handledObject(t, 0)
	if err := e.cache.Update(now); err != nil {
		t.Fatal(err)
	}
	makePass(t, e, b.key)
	if b.seen != now {
		t.Error("an unused earlier version is kept")
	}
}

// attended returns an object with a timer that was called.
func attended(t *testing.T) (restingEngine, *background) {
	var calls sync.WaitGroup
	calls.Add(1)
	e := atRest(t, 1, func(r *registry.Registry) { timed(r, calls.Done) })
	t.Cleanup(func() { e.engine.supervisor.Stop(context.Background()) })
	makePass(t, e, e.keys[0])
	calls.Wait()
	return e, e.engine.objects.of(e.keys[0]).background
}

// idle returns the memory of an object that needs no more work.
func idle(t *testing.T, c company) int64 {
	const objects = 1000
	var calls sync.WaitGroup
	calls.Add(objects * c.calls)
	before := inUse()
	e := atRest(t, objects, func(r *registry.Registry) {
		if c.declare != nil {
			c.declare(r, calls.Done)
		}
	})
	r := e.engine.resources.get(kex.String())
	ctx, cancel := context.WithCancel(t.Context())
	ended, err := watchIndices(ctx, e.engine)
	if err != nil {
		t.Fatal(err)
	}
	defer ended()
	defer cancel()
	for _, key := range e.keys {
		if r.indexer != nil {
			consumer{e.engine}.index(t.Context(), r, key, object.WatchEvent{Type: watch.Added, Snapshot: r.Cached(key.NamespacedName)})
		}
		makePass(t, e, key)
	}
	calls.Wait()
	each := (inUse() - before) / objects
	runtime.KeepAlive(e.keys)
	e.engine.supervisor.Stop(t.Context())
	return each
}

// inUse counts the stacks of goroutines, too. A collection halves a stack at most, and what waits
// for a cleanup is freed by a later one.
func inUse() int64 {
	heap, stacks := heapAndStacks()
	return heap + stacks
}

func heapAndStacks() (heap, stacks int64) {
	for last := int64(math.MaxInt64); ; last = heap + stacks {
		heap = liveHeap()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		if stacks = int64(memory.StackInuse); heap+stacks > last-last/500 {
			return heap, stacks
		}
	}
}

func timed(r *registry.Registry, called func()) {
	r.Add(handler.Timer(selector.New("kopfexamples"), handler.Function{Timer: func(context.Context, *handler.Tick) error {
		called()
		return nil
	}}, handler.ID("timer"), handler.Interval(time.Hour)))
}

func accompanied(r *registry.Registry, called func()) {
	r.Add(handler.Daemon(selector.New("kopfexamples"), handler.Function{Daemon: func(_ context.Context, t *handler.Task) error {
		called()
		for !t.Wait(time.Hour) {
			t.Logger().Info("An hour has passed.")
		}
		return nil
	}}, handler.ID("daemon")))
}

func accompaniedElsewhere(r *registry.Registry, called func()) {
	r.Add(handler.Daemon(selector.New("kopfexamples"), handler.Function{Daemon: func(context.Context, *handler.Task) error {
		called()
		return nil
	}}, handler.ID("daemon"), handler.Labels(map[string]handler.Matcher{"no": handler.Equal("such")})))
}

func indexed(r *registry.Registry, called func()) {
	index := index.New[string, string]()
	r.Add(handler.Index(selector.New("kopfexamples"), handler.Function{Table: index, Index: func(_ context.Context, i *handler.Indexed) (any, error) {
		called()
		return map[string]string{"all": i.Name()}, nil
	}}, handler.ID("index")))
}

func remembering(r *registry.Registry, called func()) {
	visits := memo.New(nil, func(*int) *int { return new(int) })
	index := index.New[string, string]()
	r.Add(handler.Index(selector.New("kopfexamples"), handler.Function{Table: index, Index: func(_ context.Context, i *handler.Indexed) (any, error) {
		called()
		*visits.Of(i)++
		return map[string]string{}, nil
	}}, handler.ID("index")))
}

// parental declares a handler of children, of which the objects have none.
// ensuring declares a handler that watches an index, unless that is nil.
func ensuring(watched *index.Index[string, string]) func(r *registry.Registry, called func()) {
	return func(r *registry.Registry, _ func()) {
		options := []handler.EnsureOption{handler.ID("children")}
		if watched != nil {
			options = append(options, handler.WatchIndex(watched))
			r.Add(handler.Index(selector.New("pods"), handler.Function{Table: watched, Index: func(context.Context, *handler.Indexed) (any, error) {
				return map[string]string{}, nil
			}}, handler.ID("index")))
		}
		all, err := handler.Ensure(selector.New("kopfexamples"), handler.Function{Ensures: func(context.Context, *handler.Change) ([]client.Object, error) {
			return nil, nil
		}}, options...)
		for _, d := range all {
			r.Add(d, err)
		}
	}
}

func parental(r *registry.Registry, _ func()) {
	r.Add(handler.Child(selector.New("kopfexamples"), selector.New("v1", "pods"), handler.Function{
		Child: func(context.Context, *handler.ChildChange) error { return nil },
	}, handler.ID("tell")))
}

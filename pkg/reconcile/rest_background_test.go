//go:build !race

// The race detector needs additional memory.

package reconcile

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// company describes the background state of an idle object in memory.
type company struct {
	declare func(r *registry.Registry, called func())
	// calls is the number of calls per object.
	calls int
	limit int64 // bytes per object
	// child is set if each object gets a child after the first pass.
	child bool
	// apart is set if each call ends before the next one begins: how many overlap depends on the machine, and the runtime
	// keeps some memory of each goroutine.
	apart bool
	// stored replaces a text in the objects, which have more than an object alone.
	stored [2]string
}

func TestIdleObjectWithHandlersTakesLittleMemory(t *testing.T) {
	if !alone(t) {
		return
	}
	alone := idleInBubble(t, company{})
	tests := map[string]company{
		"a timer that was called":                {declare: timed, calls: 1, apart: true, limit: 1024},
		"a timer with an interval of the object": {declare: ticking(handler.IntervalFunc(func(*handler.Call) time.Duration { return time.Hour })), calls: 1, apart: true, limit: 1024},
		"a timer with a schedule":                {declare: ticking(handler.Scheduled("@yearly")), limit: 1024},
		"handlers that follow each other":        {declare: ordered, limit: 100},
		"a handler that waits for quiet":         {declare: quiet, limit: 100},
		"a daemon":                               {declare: accompanied, calls: 1, limit: 6500},
		"a daemon that looks at fields":          {declare: attentive, calls: 1, limit: 8000}, // 5.6 to 7.1 KB: a stack that was interrupted can be of twice the size
		"a daemon that matches others":           {declare: accompaniedElsewhere, limit: 100},
		"an index with one key":                  {declare: indexed, calls: 1, limit: 500},
		"a memo of the indexing function":        {declare: remembering, calls: 1, limit: 700},
		"a handler of children":                  {declare: parental, limit: 700},
		"a handler that has seen a child":        {declare: parental, calls: 1, limit: 1400, child: true},
		"a handler of Ensure":                    {declare: ensuring(nil), limit: 700},
		"a handler of Ensure of an index":        {declare: ensuring(index.New[string, string]()), limit: 900},
		"a revision of a handler": {declare: revised, limit: 500, stored: [2]string{
			`"annotations":{`, `"annotations":{"kopf.zalando.org/handled-revisions":"{\"done\":{\"revised\":\"1\"}}",`,
		}},
		"conditions": {declare: conditioned, limit: 300, stored: [2]string{`"status":{`, `"status":{"observedGeneration":1,"conditions":[` +
			`{"type":"Ready","status":"True","reason":"Reconciled","message":"The handlers have finished.","observedGeneration":1,"lastTransitionTime":"2026-11-20T20:33:33Z"}],`}},
		"a handler of drift, with Ensure": {declare: drifting, limit: 700}, // as without it
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			each := idleInBubble(t, test) - alone
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
	d := e.engine.resources.get(b.key.Resource).Background[0]
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

// idleInBubble returns the memory of an object that needs no more work.
func idleInBubble(t *testing.T, c company) (each int64) {
	synctest.Test(t, func(t *testing.T) { each = idle(t, c) })
	return each
}

// idle returns the memory of an object when nothing runs any more for any of them.
func idle(t *testing.T, c company) int64 {
	const objects = 1000
	var calls atomic.Int64
	before := inUse()
	e := atRest(t, objects, func(r *registry.Registry) {
		if c.declare != nil {
			c.declare(r, func() { calls.Add(1) })
		}
	})
	for _, key := range e.keys {
		state := e.engine.objects.of(key)
		state.resetFor(e.engine.resources.get(key.Resource).Cached(key.NamespacedName).GetUID())
		state.seen = true // it is no copy, whose children would be missing
	}
	for i := range e.keys {
		if err := e.cache.Update(handledObject(t, i, c.stored[:]...)); err != nil {
			t.Fatal(err)
		}
	}
	r := e.engine.resources.get(kex.String())
	ctx, cancel := context.WithCancel(t.Context())
	ended, err := e.engine.watchIndices(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer ended()
	defer cancel()
	for _, key := range e.keys {
		consumer{e.engine}.Index(t.Context(), r.Resource, object.WatchEvent{Type: watch.Added, Snapshot: r.Cached(key.NamespacedName)})
		makePass(t, e, key)
		if c.apart {
			synctest.Wait()
		}
	}
	if c.child {
		giveChildren(t, e)
	}
	synctest.Wait()
	if got := calls.Load(); got != int64(objects*c.calls) {
		t.Errorf("%d calls, want %d of each of the %d objects", got, c.calls, objects)
	}
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
	r.Add(handler.Timer(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
		called()
		return nil
	}), handler.ID("timer"), handler.Interval(time.Hour)))
}

// ticking declares a timer that is called at other times.
func ticking(option handler.BackgroundOption) func(r *registry.Registry, called func()) {
	return func(r *registry.Registry, called func()) {
		r.Add(handler.Timer(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
			called()
			return nil
		}), handler.ID("timer"), option))
	}
}

func ordered(r *registry.Registry, _ func()) {
	r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("backup")))
	r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("upgrade"), handler.After("backup")))
}

func quiet(r *registry.Registry, _ func()) {
	r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("quiet"), handler.Idle(time.Hour)))
}

func accompanied(r *registry.Registry, called func()) {
	r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, t *handler.Call) error {
		called()
		for !t.Wait(time.Hour) {
			t.Context.Logger.Info("An hour has passed.")
		}
		return nil
	}), handler.ID("daemon")))
}

// attentive declares a daemon that waits for changes of a field and of children.
func attentive(r *registry.Registry, called func()) {
	r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, t *handler.Call) error {
		called()
		for !t.WaitForChange(time.Hour) {
			t.Context.Logger.Info("Something has changed.")
		}
		return nil
	}), handler.ID("daemon"), handler.WakeOn("spec"), handler.WatchChildren(selector.New("pods"), nil)))
}

func accompaniedElsewhere(r *registry.Registry, called func()) {
	r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
		called()
		return nil
	}), handler.ID("daemon"), handler.Labels(map[string]handler.Matcher{"no": handler.Equal("such")})))
}

func indexed(r *registry.Registry, called func()) {
	index := index.New[string, string]()
	r.Add(handler.Index(selector.New("kopfexamples"), handlertest.Filling(index, func(_ context.Context, i *handler.Call) (any, error) {
		called()
		return map[string]string{"all": i.Name()}, nil
	}), handler.ID("index")))
}

func remembering(r *registry.Registry, called func()) {
	visits := memo.New(nil, func(*int) *int { return new(int) })
	index := index.New[string, string]()
	r.Add(handler.Index(selector.New("kopfexamples"), handlertest.Filling(index, func(_ context.Context, i *handler.Call) (any, error) {
		called()
		*visits.Of(i)++
		return map[string]string{}, nil
	}), handler.ID("index")))
}

// ensuring declares a handler that watches an index, unless that is nil.
func ensuring(watched *index.Index[string, string]) func(r *registry.Registry, called func()) {
	return func(r *registry.Registry, _ func()) {
		options := []handler.ChildOption{handler.ID("children")}
		if watched != nil {
			options = append(options, handler.WatchIndex(watched))
			r.Add(handler.Index(selector.New("pods"), handlertest.Filling(watched, func(context.Context, *handler.Call) (any, error) {
				return map[string]string{}, nil
			}), handler.ID("index")))
		}
		all, err := handler.Ensure(selector.New("kopfexamples"), handlertest.Returning(func(context.Context, *handler.Call) ([]client.Object, error) {
			return nil, nil
		}), options...)
		for _, d := range all {
			r.Add(d, err)
		}
	}
}

func revised(r *registry.Registry, _ func()) {
	r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("revised"), handler.Revision("1")))
}

func conditioned(r *registry.Registry, _ func()) {
	r.Add(handler.ForConditions(selector.New("kopfexamples"), nil))
}

// drifting declares a handler of drift, which needs one of Ensure.
func drifting(r *registry.Registry, called func()) {
	ensuring(nil)(r, called)
	r.Add(handler.Drift(selector.New("kopfexamples"), handlertest.Returning(func(context.Context, *handler.Call) (convergence.Resolution, error) {
		return convergence.Restore(), nil
	}), handler.ID("drift")))
}

// parental declares a handler of children.
// giveChildren gives each object a child, and calls its handler. Only what is known about the child
// counts, and the child itself is in the cache.
func giveChildren(t *testing.T, e restingEngine) {
	t.Helper()
	setUpChildren(e.engine)
	for _, key := range e.keys {
		observeChild(t, e.engine, key)
		makeWholePass(t, e, key)
		makePass(t, e, key)
	}
}

package reconcile

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// restingEngine returns an engine with a number of handled objects of 1 KB. It has no
// connection, so any write fails the test.
type restingEngine struct {
	*workers
	keys  []object.Key
	cache *watch.Stream
}

func atRest(t testing.TB, objects int, more ...func(r *registry.Registry)) restingEngine {
	t.Helper()
	handlers := handlersOf(t, func(r *registry.Registry) {
		for _, declare := range more {
			declare(r)
		}
		r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("apply")))
		r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("apply")))
		r.Add(handler.Delete(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("remove")))
	})
	e := New(Config{Handlers: handlers, Logger: logr.Discard(), Context: withCall})
	r := served(t, e, handlers)
	stream := watch.NewStream(t.Context(), r.Resource, "", unobserved{})
	r.Add(stream)
	resting := restingEngine{workers: &workers{engine: e, term: term{calls: t.Context(), writes: t.Context(), stopping: make(chan struct{})}}, cache: stream}
	for i := range objects {
		snapshot := handledObject(t, i)
		if err := resting.cache.Add(snapshot); err != nil {
			t.Fatal(err)
		}
		resting.keys = append(resting.keys, r.Key(snapshot))
	}
	return resting
}

// served adds a resource with handlers to an engine.
func served(t testing.TB, e *Engine, handlers registry.Handlers) *resource {
	t.Helper()
	r := newResource(watch.NewResource(kex, &kube.Client{}), handlers)
	r.indexer = consumer{e}.newIndexer(r, handlers)
	e.resources.put(r)
	return r
}

// handledObject returns an object as the API server has it after it was handled, with other texts in
// place of some.
func handledObject(t testing.TB, number int, replaced ...string) *object.Snapshot {
	t.Helper()
	text, err := os.ReadFile("../model/object/testdata/served.json")
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("example-00001"), fmt.Appendf(nil, "example-%05d", number))
	text = bytes.ReplaceAll(text, []byte("0e2078a1c47c"), fmt.Appendf(nil, "%012d", number)) // of the uid
	snapshot, err := object.ParseSnapshot([]byte(strings.NewReplacer(replaced...).Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func withCall(ctx context.Context, call CallContext) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

type callKey struct{}

// makePass makes a pass, which must not find any work.
func makePass(t testing.TB, w restingEngine, key object.Key) {
	result, err := w.Reconcile(t.Context(), key)
	if err != nil || result.RequeueAfter != 0 || w.engine.objects.of(key).reconciledVersion == "" {
		t.Fatalf("%s: %v, %v", key, result, err)
	}
}

// makeWholePass makes a pass, and waits for the part of it that has left the worker.
func makeWholePass(t testing.TB, w restingEngine, key object.Key) {
	t.Helper()
	if result, err := w.Reconcile(t.Context(), key); err != nil || result.RequeueAfter != 0 {
		t.Fatalf("%s: %v, %v", key, result, err)
	}
	w.detached.Wait()
}

func TestPassesOverObjectsAtRestAreCheap(t *testing.T) {
	e := atRest(t, 1)
	makePass(t, e, e.keys[0])
	tests := map[string]struct {
		prepare func(m *objectState)
		limit   float64 // of allocations
	}{
		"nothing has changed since the last pass": {func(*objectState) {}, 2},
		"the first pass after a restart":          {func(m *objectState) { m.lifetime = lifetime{} }, 270},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			allocations := testing.AllocsPerRun(100, func() {
				test.prepare(e.engine.objects.of(e.keys[0]))
				makePass(t, e, e.keys[0])
			})
			if allocations > test.limit {
				t.Errorf("%.0f allocations, more than %.0f", allocations, test.limit)
			}
		})
	}
}

func TestIdleObjectTakesLittleMemory(t *testing.T) {
	if !alone(t) {
		return
	}
	const objects, limit = 500, 2000 // bytes, for an object of 2335 bytes of JSON
	before := liveHeap()
	e := atRest(t, objects)
	for _, key := range e.keys {
		makePass(t, e, key)
	}
	if each := (liveHeap() - before) / objects; each > limit {
		t.Errorf("an idle object takes %d bytes, more than %d", each, limit)
	}
	runtime.KeepAlive(e)
	runtime.KeepAlive(e.keys)
}

// alone runs a test that measures memory in a process of its own, and reports whether this is the
// one. In the process of all tests, the remains of others are freed meanwhile.
func alone(t *testing.T) bool {
	t.Helper()
	const variable = "KOPF_TEST_ALONE"
	if os.Getenv(variable) != "" {
		return true
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, "-test.run", "^"+t.Name()+"$")
	command.Env = append(os.Environ(), variable+"=1")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	return false
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the second collection frees the pools
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

func BenchmarkPassAtRest(b *testing.B) {
	e := atRest(b, 1)
	makePass(b, e, e.keys[0])
	b.ReportAllocs()
	for b.Loop() {
		makePass(b, e, e.keys[0])
	}
}

func BenchmarkPassAfterRestart(b *testing.B) {
	e := atRest(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		e.engine.objects.of(e.keys[0]).lifetime = lifetime{}
		makePass(b, e, e.keys[0])
	}
}

func BenchmarkDetect(b *testing.B) {
	e := atRest(b, 1)
	p := e.newPass(e.engine.resources.get(kex.String()), e.keys[0], &e.term)
	body := p.resource.Cached(e.keys[0].NamespacedName).Body()
	body.Raw() // decoded before the measurement
	b.ReportAllocs()
	for b.Loop() {
		if c, err := p.plan(b.Context(), body); err != nil || c.Reason.Handled() {
			b.Fatal(c, err)
		}
	}
}

// unobserved is a consumer of a stream that shows nothing, so that tests decide about passes.
type unobserved struct{ watch.Consumer }

func (unobserved) Index(context.Context, *watch.Resource, object.WatchEvent) {}

func (unobserved) Observe(context.Context, *watch.Resource, object.WatchEvent) {}

func (unobserved) BeginAnew(*watch.Resource, object.Key) {}

package reconcile

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// atRest is an engine that knows so many objects of 1 KB, all of them handled,
// and has no connection: whatever it would write fails the test.
func atRest(t testing.TB, objects int, more ...func(r *registry.Registry)) (*Engine, []object.Key) {
	t.Helper()
	handlers := handlersOf(t, func(r *registry.Registry) {
		for _, declare := range more {
			declare(r)
		}
		r.Add(handler.Create(selector.New("kopfexamples"), handler.Function{Change: ignoreChange}, handler.ID("apply")))
		r.Add(handler.Update(selector.New("kopfexamples"), handler.Function{Change: ignoreChange}, handler.ID("apply")))
		r.Add(handler.Delete(selector.New("kopfexamples"), handler.Function{Change: ignoreChange}, handler.ID("remove")))
	})
	e := New(Config{Handlers: handlers, Logger: logr.Discard(), Context: withAbout})
	s := newServed(kex, handlers, &kube.Client{})
	s.indexer = e.newIndexer(s, handlers)
	informer := cache.NewSharedIndexInformer(nil, &object.Snapshot{}, 0, cache.Indexers{})
	s.streams.put(&stream{informer: informer})
	e.served.put(s)
	e.working, e.stopping = t.Context(), make(chan struct{})
	var keys []object.Key
	for i := range objects {
		snapshot := handledObject(t, i)
		if err := informer.GetStore().Add(snapshot); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, s.key(snapshot))
	}
	return e, keys
}

// handledObject is one as the API server has it after it was handled.
func handledObject(t testing.TB, number int) *object.Snapshot {
	t.Helper()
	text, err := os.ReadFile("../model/object/testdata/served.json")
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("example-00001"), fmt.Appendf(nil, "example-%05d", number))
	snapshot, err := object.ParseSnapshot(text)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.Packed()
}

func withAbout(ctx context.Context, about About) context.Context {
	return context.WithValue(ctx, aboutKey{}, about)
}

type aboutKey struct{}

// visit makes a pass, which must find nothing to do.
func visit(t testing.TB, e *Engine, key object.Key) {
	result, err := e.Reconcile(t.Context(), key)
	if err != nil || result.RequeueAfter != 0 || e.memories.of(key).settled == "" {
		t.Fatalf("%s: %v, %v", key, result, err)
	}
}

func TestPassesOverObjectsAtRestAreCheap(t *testing.T) {
	e, keys := atRest(t, 1)
	visit(t, e, keys[0])
	tests := map[string]struct {
		prepare func(m *memory)
		limit   float64 // of allocations
	}{
		"nothing has happened since the last one": {func(*memory) {}, 20},
		"it is the first one after a restart":     {func(m *memory) { m.recollection = recollection{} }, 300},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			allocations := testing.AllocsPerRun(100, func() {
				test.prepare(e.memories.of(keys[0]))
				visit(t, e, keys[0])
			})
			if allocations > test.limit {
				t.Errorf("%.0f allocations, more than %.0f", allocations, test.limit)
			}
		})
	}
}

func TestAnIdleObjectTakesLittleMemory(t *testing.T) {
	const objects, limit = 500, 2000 // bytes, for an object that is 2335 bytes of JSON when it is handled
	before := liveHeap()
	e, keys := atRest(t, objects)
	for _, key := range keys {
		visit(t, e, key)
	}
	if each := (liveHeap() - before) / objects; each > limit {
		t.Errorf("an idle object takes %d bytes, more than %d", each, limit)
	}
	runtime.KeepAlive(e)
	runtime.KeepAlive(keys)
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // what pools held on to goes with the second one
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

func BenchmarkPassAtRest(b *testing.B) {
	e, keys := atRest(b, 1)
	visit(b, e, keys[0])
	b.ReportAllocs()
	for b.Loop() {
		visit(b, e, keys[0])
	}
}

func BenchmarkPassAfterRestart(b *testing.B) {
	e, keys := atRest(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		e.memories.of(keys[0]).recollection = recollection{}
		visit(b, e, keys[0])
	}
}

func BenchmarkDetect(b *testing.B) {
	e, keys := atRest(b, 1)
	p := &pass{Engine: e, served: e.served.get(keys[0].Resource), key: keys[0], memory: e.memories.of(keys[0])}
	p.body = p.cached(keys[0].NamespacedName).Body()
	p.body.Raw() // decoded, as it is for all but the first look at it
	b.ReportAllocs()
	for b.Loop() {
		if c, err := p.detect(b.Context()); err != nil || c.Reason.Handled() {
			b.Fatal(c, err)
		}
	}
}

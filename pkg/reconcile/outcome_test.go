package reconcile

import (
	"context"
	"errors"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// counted creates metrics with a separate registry.
func counted(t testing.TB) (*metrics.Metrics, *prometheus.Registry) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	m, err := metrics.New(r, "test")
	if err == nil {
		err = m.Open()
	}
	if err != nil {
		t.Fatal(err)
	}
	return m, r
}

// series returns all series as "name label=value…", without the operator.
func series(t testing.TB, r prometheus.Gatherer) (texts []string) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			text := family.GetName()
			for _, label := range metric.GetLabel() {
				if label.GetName() != "operator" {
					text += " " + label.GetName() + "=" + label.GetValue()
				}
			}
			texts = append(texts, text)
		}
	}
	return texts
}

func TestOutcomesOfAttempts(t *testing.T) {
	failure := errors.New("failed")
	tests := map[string]struct {
		outcome call.Outcome
		want    metrics.Outcome
	}{
		"a success":               {call.Outcome{Final: true}, metrics.Succeeded},
		"an ignored error":        {call.Outcome{Final: true, Ignored: failure}, metrics.Ignored},
		"a permanent error":       {call.Outcome{Final: true, Err: failure}, metrics.Failed},
		"a temporary error":       {call.Outcome{Err: failure}, metrics.Retried},
		"unfinished sub-handlers": {call.Outcome{Err: &handler.SubhandlersError{}}, metrics.Waiting},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := outcomeOf(test.outcome); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestSubhandlersAreCountedAsTheirHandler(t *testing.T) {
	m, r := counted(t)
	e := New(Config{Metrics: m})
	s := served(t, e, nil)
	top := handlersOf(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("kex"), handlertest.Function(ignoreChange), handler.ID("create")))
	})[0]
	for _, item := range []string{"one", "two"} {
		child := *top
		child.ID, child.Kind = item, handler.Subhandler
		below := child.Under(top)
		e.measure(s, below, call.Outcome{Called: true, Final: true})
		e.measure(s, child.Under(below), call.Outcome{Called: true, Final: true})
	}
	for _, text := range series(t, r) {
		if !strings.Contains(text, "handler=create kind=subhandler") {
			t.Errorf("unexpected series %s", text)
		}
	}
}

func TestWatchesAreCountedByResource(t *testing.T) {
	down := errors.New("down")
	got := countWatches([]WatchStatus{
		{Resource: "a", Namespace: "x", Listed: true},
		{Resource: "a", Namespace: "y"},
		{Resource: "a", Namespace: "z", Listed: true, Err: down},
		{Resource: "b", Listed: true},
	})
	want := []metrics.Watches{{Resource: "a", Listing: 1, Alive: 1, Failing: 1}, {Resource: "b", Alive: 1}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// Otherwise, every watched object would need memory for it.
func TestMetricsKeepNothingForAnObject(t *testing.T) {
	m, r := counted(t)
	e := atRest(t, 300)
	e.engine.Metrics = m
	m.Observe(func() metrics.State { return metrics.State{Queue: e.engine.queueState()} })
	before := len(series(t, r))
	for _, key := range e.keys {
		makePass(t, e, key)
	}
	if after := len(series(t, r)); after != before {
		t.Errorf("%d additional series for %d objects", after-before, len(e.keys))
	}
}

func TestMetricsTakeNoMemoryForAnIdleObject(t *testing.T) {
	if !alone(t) {
		return
	}
	const objects, limit = 2000, 8 // bytes
	each := func(m *metrics.Metrics) int64 {
		before := liveHeap()
		e := atRest(t, objects)
		e.engine.Metrics = m
		m.Observe(func() metrics.State { return metrics.State{Queue: e.engine.queueState()} })
		for _, key := range e.keys {
			makePass(t, e, key)
		}
		after := liveHeap()
		runtime.KeepAlive(e)
		runtime.KeepAlive(e.keys)
		return (after - before) / objects
	}
	without, with := int64(math.MaxInt64), int64(math.MaxInt64)
	for round := range 10 { // the runtime can take memory meanwhile
		if round >= 3 && with-without <= limit {
			break
		}
		m, r := counted(t) // it keeps its engine
		series(t, r)
		without = min(without, each(nil))
		with = min(with, each(m))
	}
	t.Logf("an idle object takes %d bytes without metrics, and %d with them", without, with)
	if with-without > limit {
		t.Errorf("%d bytes more", with-without)
	}
}

func TestPassesAllocateNothingForMetrics(t *testing.T) {
	e := atRest(t, 1)
	makePass(t, e, e.keys[0])
	pass := func() {
		e.engine.objects.of(e.keys[0]).lifetime = lifetime{}
		makePass(t, e, e.keys[0])
	}
	without := testing.AllocsPerRun(100, pass)
	e.engine.Metrics, _ = counted(t)
	if with := testing.AllocsPerRun(100, pass); with > without {
		t.Errorf("%g allocations, and %g with metrics", without, with)
	}
}

// A call can fail for the framework, such as a write in the middle of it. Those that have ended before
// are not made again, and their edits are written once.
func TestOutcomesBeforeAFailureOfThePassAreKept(t *testing.T) {
	sel, calls := selector.New("kopfexamples"), map[string]int{}
	count := func(id string, p *patch.Patch) error {
		calls[id]++
		p.Apply(func(obj *unstructured.Unstructured) error {
			number, _, err := unstructured.NestedInt64(obj.Object, "spec", id)
			return errors.Join(err, unstructured.SetNestedField(obj.Object, number+1, "spec", id))
		})
		if id == "second" && calls[id] <= 2 {
			return &handler.Interruption{Err: errBroken}
		}
		return nil
	}
	for name, declare := range map[string]func(r *registry.Registry, id string){
		"of a cycle": func(r *registry.Registry, id string) {
			r.Add(handler.Create(sel, handlertest.Function(func(_ context.Context, c *handler.Call) error { return count(id, c.Context.Patch) }), handler.ID(id)))
		},
		"triggered": func(r *registry.Registry, id string) {
			r.Add(handler.Child(sel, ofPods, handlertest.Function(func(_ context.Context, c *handler.Call) error { return count(id, c.Context.Patch) }), handler.ID(id)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clear(calls)
				l := newLone(t, m{}, func(r *registry.Registry) {
					for _, id := range []string{"first", "second", "third"} {
						declare(r, id)
					}
				})
				l.show()
				setUpChildren(l.engine)
				observeChild(t, l.engine, keyOf("a"))
				if _, err := l.pass(); !errors.Is(err, errBroken) || l.writes != 0 || !l.state().writes.HasPending() {
					t.Errorf("got %v, and %d writes", err, l.writes)
				}
				time.Sleep(time.Hour)
				if _, err := l.pass(); !errors.Is(err, errBroken) || l.writes != 1 || l.state().writes.HasPending() {
					t.Errorf("got %v, and %d writes, although nothing has ended meanwhile", err, l.writes)
				}
				for _, id := range []string{"second", "third"} {
					if l.server.annotations()[kopfPrefix+id] != nil {
						t.Errorf("%s has a record, although it was not called, or its call does not count", id)
					}
				}
				time.Sleep(time.Hour)
				l.rest()
				if want := map[string]int{"first": 1, "second": 3, "third": 1}; !maps.Equal(calls, want) {
					t.Errorf("got the calls %v", calls)
				}
				for id, number := range l.spec() {
					if number != 1.0 {
						t.Errorf("the edit of %s was written %v times", id, number)
					}
				}
			})
		})
	}
}

// Package budgets tests how many writes the handling of an object costs. The README promises
// these numbers.
package budgets

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) { testenv.Main(m, &cluster, testenv.Options{}) }

const handledAnnotation = "kopf.zalando.org/last-handled-configuration"

var examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")

func succeed(context.Context, *kopf.Change) error { return nil }

func returnResult(_ context.Context, c *kopf.Change) error {
	c.SetResult(map[string]any{"field": c.Body().ResourceVersion()})
	return nil
}

// lifeCycle counts the writes of a creation, an update and a deletion.
func lifeCycle(t *testing.T, registry *kopf.Registry, adjust ...func(*kopf.Options)) (create, update, remove int) {
	g := gomega.NewWithT(t)
	config := cluster.Config()
	requests := testenv.Count(config)
	namespace := cluster.Namespace(t)
	operators.Start(t, config, namespace, registry, adjust...)
	writes := func() int {
		defer requests.Reset()
		t.Log(requests.String())
		return requests.Snapshot().Writes("kopfexamples")
	}
	ctx, obj := t.Context(), testenv.NewObject("KopfExample", namespace, "one", map[string]any{"field": "old"})

	g.Expect(cluster.Client().Create(ctx, obj)).To(gomega.Succeed())
	g.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handledAnnotation, gomega.ContainSubstring("old")))
	rest(g, requests)
	create = writes()

	g.Expect(cluster.Client().Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"field":"new"}}`)))).To(gomega.Succeed())
	g.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handledAnnotation, gomega.ContainSubstring("new")))
	rest(g, requests)
	update = writes()

	g.Expect(cluster.Client().Delete(ctx, obj)).To(gomega.Succeed())
	g.Eventually(cluster.Exists(obj)).Should(gomega.BeFalse())
	rest(g, requests)
	return create, update, writes()
}

// rest waits until the operator has nothing left to do.
func rest(g *gomega.WithT, requests *testenv.CountingTransport) {
	g.Eventually(cluster.AtRest(requests)).Should(gomega.BeTrue(), "%s", requests)
}

func TestLifeCycle(t *testing.T) {
	tests := map[string]struct {
		handler                func(context.Context, *kopf.Change) error
		create, update, remove int
	}{
		"with results":    {returnResult, 3, 2, 1},
		"without results": {succeed, 2, 1, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			registry := kopf.NewRegistry()
			registry.OnCreate(examples, test.handler)
			registry.OnUpdate(examples, test.handler)
			registry.OnDelete(examples, test.handler)
			create, update, remove := lifeCycle(t, registry)
			gomega.NewWithT(t).Expect([]int{create, update, remove}).To(gomega.Equal([]int{test.create, test.update, test.remove}))
		})
	}
}

// hearing is a storage that hears the end of objects.
type hearing struct {
	storage.SmartProgress

	ended *atomic.Int64
}

// Erase implements storage.Eraser.
func (h hearing) Erase(context.Context, *object.Body) error {
	h.ended.Add(1)
	return nil
}

// Neither spans nor storages that hear the end of an object cost a write.
func TestSpansAndTheEndOfObjectsCostNoWrite(t *testing.T) {
	g, registry, spans, ended := gomega.NewWithT(t), kopf.NewRegistry(), &operators.Spans{}, &atomic.Int64{}
	registry.OnCreate(examples, succeed)
	registry.OnUpdate(examples, succeed)
	registry.OnDelete(examples, succeed)
	create, update, remove := lifeCycle(t, registry, func(o *kopf.Options) {
		o.Tracer = spans
		o.Settings.Persistence.Progress = hearing{ended: ended}
	})
	g.Expect([]int{create, update, remove}).To(gomega.Equal([]int{2, 1, 1}))
	g.Expect(spans.Tree()).NotTo(gomega.BeEmpty())
	g.Eventually(ended.Load).Should(gomega.Equal(int64(1)))
}

// The finalizer is added together with the record of the creation, for which no handler is called.
func TestOnlyDeletionHandlers(t *testing.T) {
	registry := kopf.NewRegistry()
	registry.OnDelete(examples, succeed)
	create, update, remove := lifeCycle(t, registry)
	gomega.NewWithT(t).Expect([]int{create, update, remove}).To(gomega.Equal([]int{1, 1, 1}))
}

// There are three creation handlers: one is retried twice, and one has two sub-handlers with
// results.
func TestThreeHandlers(t *testing.T) {
	g := gomega.NewWithT(t)
	registry := kopf.NewRegistry()
	registry.OnCreate(examples, succeed, kopf.ID("a"))
	registry.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		if c.Retry() < 2 {
			return kopf.Temporary(errors.New("not yet"), 100*time.Millisecond)
		}
		return nil
	}, kopf.ID("b"))
	registry.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		c.Subhandler("item1", returnResult)
		c.Subhandler("item2", returnResult)
		return nil
	}, kopf.ID("c"))
	_, requests := created(t, registry)
	g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(4), "%s", requests)
}

// Handlers with an order are called one after another, and the end of each is stored before the next one is called. One
// that is skipped costs nothing: it ends with the write that makes its turn impossible. Waiting for an idle object costs
// nothing, either.
func TestOrderAndIdle(t *testing.T) {
	none := []kopf.ChangeOption{}
	tests := map[string]struct {
		handlers map[string][]kopf.ChangeOption
		writes   []int // of a creation, an update, and a deletion
	}{
		"without an order":     {map[string][]kopf.ChangeOption{"a": none, "b": none, "c": none}, []int{1, 1, 0}},
		"one after another":    {map[string][]kopf.ChangeOption{"a": none, "b": {kopf.After("a")}, "c": {kopf.After("b")}}, []int{3, 3, 0}},
		"two after one":        {map[string][]kopf.ChangeOption{"a": none, "b": {kopf.After("a")}, "c": {kopf.After("a")}}, []int{2, 2, 0}},
		"two that are skipped": {map[string][]kopf.ChangeOption{"a": none, "b": {kopf.AfterFailure("a")}, "c": {kopf.After("b")}}, []int{1, 1, 0}},
		"idle":                 {map[string][]kopf.ChangeOption{"a": {kopf.Idle(200 * time.Millisecond)}}, []int{1, 1, 0}},
		"idle, and one after another": {
			map[string][]kopf.ChangeOption{"a": {kopf.Idle(200 * time.Millisecond)}, "b": {kopf.After("a"), kopf.Idle(200 * time.Millisecond)}},
			[]int{2, 2, 0},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := kopf.NewRegistry()
			for id, options := range test.handlers {
				options = append(options, kopf.ID(id))
				registry.OnCreate(examples, succeed, options...)
				registry.OnUpdate(examples, succeed, options...)
			}
			create, update, remove := lifeCycle(t, registry)
			gomega.NewWithT(t).Expect([]int{create, update, remove}).To(gomega.Equal(test.writes))
		})
	}
}

func TestEachRetryCostsOneWrite(t *testing.T) {
	g := gomega.NewWithT(t)
	registry := kopf.NewRegistry()
	registry.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		if c.Retry() < 5 {
			return kopf.Temporary(errors.New("not yet"), 50*time.Millisecond)
		}
		return nil
	}, kopf.ID("retried"))
	_, requests := created(t, registry)
	g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(6), "%s", requests)
}

// The object changes while one of its handlers is retried: one write for the first attempts, one
// for the end of the retried handler, and one for the change that the other sees next.
func TestEachStateAtWhichHandlersEndCostsOneWrite(t *testing.T) {
	g := gomega.NewWithT(t)
	registry := kopf.NewRegistry()
	registry.OnField(examples, "spec.field", succeed, kopf.ID("quick"))
	registry.OnField(examples, "spec.field", func(_ context.Context, c *kopf.Change) error {
		if c.Retry() == 0 && c.New().String() == "old" {
			return kopf.Temporary(errors.New("not yet"), 2*time.Second)
		}
		return nil
	}, kopf.ID("retried"))
	config := cluster.Config()
	requests := testenv.Count(config)
	obj := testenv.NewObject("KopfExample", cluster.Namespace(t), "one", map[string]any{"field": "old"})
	operators.Start(t, config, obj.GetNamespace(), registry)
	g.Expect(cluster.Client().Create(t.Context(), obj)).To(gomega.Succeed())
	g.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handledAnnotation+"-started", gomega.ContainSubstring("old")))
	g.Expect(cluster.Client().Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"field":"new"}}`)))).To(gomega.Succeed())
	g.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handledAnnotation, gomega.ContainSubstring("new")))
	rest(g, requests)
	g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(3), "%s", requests)
}

func TestNothingIsWrittenAtRest(t *testing.T) {
	g := gomega.NewWithT(t)
	registry := kopf.NewRegistry()
	registry.OnCreate(examples, returnResult)
	registry.OnUpdate(examples, returnResult)
	registry.OnDelete(examples, succeed)
	obj, requests := created(t, registry)

	requests.Reset()
	status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"other":"x"}}`))
	g.Expect(cluster.Client().Status().Patch(t.Context(), obj, status)).To(gomega.Succeed())
	rest(g, requests)
	g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), "an event without a change: %s", requests)

	config := cluster.Config()
	again := testenv.Count(config)
	operators.Start(t, config, obj.GetNamespace(), registry)
	rest(g, again)
	g.Expect(again.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), "a restart: %s", again)
}

// Objects that are let go with their namespace, and taken up again, are left as they are.
func TestANamespaceThatLeavesAndReturnsCostsNoWrite(t *testing.T) {
	g, registry, config, namespace := gomega.NewWithT(t), kopf.NewRegistry(), cluster.Config(), cluster.Namespace(t)
	registry.OnCreate(examples, returnResult)
	registry.OnUpdate(examples, succeed)
	registry.OnDelete(examples, succeed)
	registry.Timer(examples, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("timer"), kopf.Interval(time.Hour))
	known := kopf.NewIndex(registry, examples, func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		return map[string]string{i.Name(): ""}, nil
	}, kopf.ID("known"))
	label := func(value string) {
		merge := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"served":%s}}}`, value))
		g.Expect(cluster.Client().Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, merge)).To(gomega.Succeed())
	}
	label(`"` + namespace + `"`)
	requests := testenv.Count(config)
	operators.Start(t, config, "", registry, func(o *kopf.Options) { o.Settings.Scope.Namespaces = []string{"labels:served=" + namespace} })
	obj := testenv.NewObject("KopfExample", namespace, "one", nil)
	g.Expect(cluster.Client().Create(t.Context(), obj)).To(gomega.Succeed())
	g.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handledAnnotation, gomega.Not(gomega.BeEmpty())))
	rest(g, requests)
	requests.Reset()
	label("null")
	g.Eventually(known.Len).Should(gomega.BeZero())
	label(`"` + namespace + `"`)
	g.Eventually(known.Len).Should(gomega.Equal(1))
	rest(g, requests)
	g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), "%s", requests)
}

// created runs an operator and waits until it has handled a new object.
func created(t *testing.T, registry *kopf.Registry) (*unstructured.Unstructured, *testenv.CountingTransport) {
	g := gomega.NewWithT(t)
	config := cluster.Config()
	requests := testenv.Count(config)
	obj := testenv.NewObject("KopfExample", cluster.Namespace(t), "one", nil)
	operators.Start(t, config, obj.GetNamespace(), registry)
	g.Expect(cluster.Client().Create(t.Context(), obj)).To(gomega.Succeed())
	g.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handledAnnotation, gomega.Not(gomega.BeEmpty())))
	rest(g, requests)
	return obj, requests
}

// The conditions are written with the status, so that only handlers without results pay for
// them. Their resource is the same with and without.
func TestConditions(t *testing.T) {
	tests := map[string]struct {
		handler                func(context.Context, *kopf.Change) error
		conditions             bool
		create, update, remove int
	}{
		"with results, without conditions":    {returnResult, false, 3, 2, 1},
		"with results and conditions":         {returnResult, true, 3, 2, 1},
		"without results, without conditions": {succeed, false, 2, 1, 1},
		"without results, with conditions":    {succeed, true, 3, 2, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			registry := kopf.NewRegistry()
			registry.OnCreate(examples, test.handler)
			registry.OnUpdate(examples, test.handler)
			registry.OnDelete(examples, test.handler)
			if test.conditions {
				registry.Conditions(examples)
			}
			create, update, remove := lifeCycle(t, registry)
			gomega.NewWithT(t).Expect([]int{create, update, remove}).To(gomega.Equal([]int{test.create, test.update, test.remove}))
		})
	}
}

// A generation that changes without a cycle costs one write of the status, and nothing without
// conditions. At rest, after a restart, and for a retry after a change of the spec, the
// conditions cost nothing.
func TestAGenerationWithoutACycle(t *testing.T) {
	for conditions, want := range map[bool]int{false: 0, true: 1} {
		g, registry := gomega.NewWithT(t), kopf.NewRegistry()
		registry.OnCreate(examples, succeed)
		if conditions {
			registry.Conditions(examples)
		}
		ignore := func(o *kopf.Options) {
			o.Settings.Persistence.DiffBase = storage.AnnotationsDiffBase{IgnoredFields: []object.Path{{"spec", "note"}}}
		}
		config, namespace := cluster.Config(), cluster.Namespace(t)
		requests := testenv.Count(config)
		operator := operators.Start(t, config, namespace, registry, ignore)
		obj := testenv.NewObject("KopfExample", namespace, "one", map[string]any{"field": "old"})
		g.Expect(cluster.Client().Create(t.Context(), obj)).To(gomega.Succeed())
		g.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handledAnnotation, gomega.Not(gomega.BeEmpty())))
		rest(g, requests)
		requests.Reset()
		for n := range 3 {
			change := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"note":%d}}`, n))
			g.Expect(cluster.Client().Patch(t.Context(), obj.DeepCopy(), change)).To(gomega.Succeed())
			rest(g, requests)
		}
		g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(3*want), "%s", requests)
		requests.Reset()
		operator.Stop()
		operators.Start(t, config, namespace, registry, ignore)
		rest(g, requests)
		g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), "%s", requests)
	}
}

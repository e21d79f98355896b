package budgets

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// writes are those to the parent and to its child.
type writes struct{ parent, child int }

// family describes the handlers of a parent that has a config map, and what each step of its life
// costs. No row allows any writes at rest.
type family struct {
	declare func(r *kopf.Registry, called *atomic.Int64)
	// calls counts the calls for a changed child; without them, the operator restores it.
	calls                     int64
	creation, change, drifted writes
}

func ensured(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	field, _ := c.Body().View().String("spec", "field")
	child := testenv.NewObject("ConfigMap", "", c.Name(), nil)
	child.SetAPIVersion("v1")
	child.Object["data"] = map[string]any{"field": field}
	return []client.Object{child}, nil
}

func ensures(r *kopf.Registry, _ *atomic.Int64) { r.Ensure(examples, ensured, kopf.ID("children")) }

func TestWritesForChildren(t *testing.T) {
	restored := writes{0, 1}
	tests := map[string]family{
		"Ensure": {declare: ensures, creation: writes{2, 1}, change: writes{1, 1}, drifted: restored},
		"Ensure and OnDrift": {
			declare: func(r *kopf.Registry, called *atomic.Int64) {
				ensures(r, called)
				r.OnDrift(examples, func(context.Context, *kopf.Drift) (kopf.Resolution, error) {
					called.Add(1)
					return kopf.RestoreDrift(), nil
				}, kopf.ID("drift"))
			},
			calls: 1, creation: writes{2, 1}, change: writes{1, 1}, drifted: restored,
		},
		"Ensure and conditions": {
			declare: func(r *kopf.Registry, called *atomic.Int64) {
				ensures(r, called)
				r.Conditions(examples)
			},
			creation: writes{3, 1}, change: writes{2, 1}, drifted: restored,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.live(t)
		})
	}
}

func (f family) live(t *testing.T) {
	t.Helper()
	g, registry, called := gomega.NewWithT(t), kopf.NewRegistry(), &atomic.Int64{}
	f.declare(registry, called)
	config, namespace := cluster.Config(), cluster.Namespace(t)
	requests := testenv.Count(config)
	start := func(registry *kopf.Registry) *operators.Operator {
		return operators.Start(t, config, namespace, registry, func(o *kopf.Options) { o.Settings.Name = "budgets" })
	}
	operator := start(registry)
	costs := func(what string, want writes) {
		t.Helper()
		rest(g, requests)
		seen := requests.Snapshot()
		g.Expect(writes{seen.Writes("kopfexamples"), seen.Writes("configmaps")}).To(gomega.Equal(want), "%s: %s", what, requests)
		requests.Reset()
	}
	parent := testenv.NewObject("KopfExample", namespace, "one", map[string]any{"field": "old"})
	child := testenv.NewObject("ConfigMap", namespace, "one", nil)
	child.SetAPIVersion("v1")
	becomes := func(value string) {
		t.Helper()
		g.Eventually(cluster.Current(child)).Should(testenv.HavePath("data.field", value))
		g.Eventually(cluster.Current(parent)).Should(testenv.HaveAnnotation(handledAnnotation, gomega.Not(gomega.BeEmpty())))
	}
	patch := func(object *unstructured.Unstructured, format, value string) {
		t.Helper()
		change := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, format, value))
		g.Expect(cluster.Client().Patch(t.Context(), object.DeepCopy(), change)).To(gomega.Succeed())
	}

	g.Expect(cluster.Client().Create(t.Context(), parent)).To(gomega.Succeed())
	becomes("old")
	costs("the creation", f.creation)
	patch(parent, `{"spec":{"field":%q}}`, "new")
	becomes("new")
	costs("a change of the parent", f.change)
	patch(child, `{"data":{"field":%q}}`, "other")
	becomes("new")
	costs("a change of the child by another client", f.drifted)
	g.Expect(called.Load()).To(gomega.Equal(f.calls))

	operator.Stop()
	costs("the end of an operator", writes{})
	again := kopf.NewRegistry()
	f.declare(again, called)
	start(again)
	costs("a restart", writes{})
}

// A handler of children is told of a change without a write to the parent.
func TestACallForAChildCostsNoWrite(t *testing.T) {
	g, registry, called := gomega.NewWithT(t), kopf.NewRegistry(), &atomic.Int64{}
	registry.OnChild(examples, kopf.Resource("v1", "configmaps"), func(_ context.Context, c *kopf.ChildChange) error {
		called.Add(1)
		return nil
	}, kopf.ID("tell"))
	config, namespace := cluster.Config(), cluster.Namespace(t)
	requests := testenv.Count(config)
	operators.Start(t, config, namespace, registry, func(o *kopf.Options) { o.Settings.Name = "budgets" })
	parent := testenv.NewObject("KopfExample", namespace, "one", nil)
	g.Expect(cluster.Client().Create(t.Context(), parent)).To(gomega.Succeed())
	child := testenv.NewObject("ConfigMap", namespace, "child", nil)
	child.SetAPIVersion("v1")
	child.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kopf.dev/v1", Kind: "KopfExample", Name: "one", UID: parent.GetUID(), Controller: new(true)}})
	g.Expect(cluster.Client().Create(t.Context(), child)).To(gomega.Succeed())
	g.Eventually(called.Load).Should(gomega.BeNumerically(">=", 1))
	for n := range 3 {
		before := called.Load()
		change := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n))
		g.Expect(cluster.Client().Patch(t.Context(), child.DeepCopy(), change)).To(gomega.Succeed())
		g.Eventually(called.Load).Should(gomega.BeNumerically(">", before))
	}
	rest(g, requests)
	g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), "%s", requests)
}

// The mark of a revision is written with the record of the handling, and another revision costs
// one write for each object: that which records its end.
func TestWritesForRevisions(t *testing.T) {
	g := gomega.NewWithT(t)
	config, namespace := cluster.Config(), cluster.Namespace(t)
	requests := testenv.Count(config)
	start := func(revision string, called *atomic.Int64) *operators.Operator {
		registry := kopf.NewRegistry()
		registry.OnCreate(examples, func(context.Context, *kopf.Change) error { called.Add(1); return nil }, kopf.ID("fn"), kopf.Revision(revision))
		return operators.Start(t, config, namespace, registry)
	}
	first, second := &atomic.Int64{}, &atomic.Int64{}
	operator := start("1", first)
	g.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, "one", nil))).To(gomega.Succeed())
	g.Eventually(first.Load).Should(gomega.Equal(int64(1)))
	rest(g, requests)
	g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(1), "%s", requests)
	operator.Stop()
	requests.Reset()

	start("2", second)
	g.Eventually(second.Load).Should(gomega.Equal(int64(1)))
	rest(g, requests)
	g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(1), "%s", requests)
}

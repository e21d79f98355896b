// Package contention tests operators, tools, and people that fight over one object on a real
// API server.
package contention

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) { testenv.Main(m, &cluster, testenv.Options{}) }

// bench is a namespace with an object to fight over.
type bench struct {
	*gomega.WithT
	t         *testing.T
	namespace string
	object    *unstructured.Unstructured
}

func newBench(t *testing.T) *bench {
	t.Helper()
	namespace := cluster.Namespace(t)
	return &bench{gomega.NewWithT(t), t, namespace, testenv.NewObject("KopfExample", namespace, "bone", map[string]any{"x": "none"})}
}

// party is an operator that wants a value in spec.x.
type party struct {
	*operators.Operator
	*testenv.CountingTransport
}

// operator runs an operator with a separate finalizer and separate annotations.
func (b *bench) operator(prefix, wants string, delays ...time.Duration) party {
	b.t.Helper()
	return b.run(wanting(wants), prefix, delays)
}

// wanting returns handlers that want a value in spec.x.
func wanting(wants string) *kopf.Registry {
	registry := kopf.NewRegistry()
	want := func(_ context.Context, c *kopf.Change) error {
		c.Patch().Set(wants, "spec", "x")
		return nil
	}
	registry.OnCreate(kopf.Resource("kopfexamples"), want, kopf.ID("want"))
	registry.OnUpdate(kopf.Resource("kopfexamples"), want, kopf.ID("want"))
	registry.OnDelete(kopf.Resource("kopfexamples"), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("bye"))
	return registry
}

// named gives an operator a name.
func named(name string) func(*kopf.Options) {
	return func(o *kopf.Options) { o.Settings.Name = name }
}

func (b *bench) run(registry *kopf.Registry, prefix string, delays []time.Duration, configure ...func(*kopf.Options)) party {
	b.t.Helper()
	config := cluster.Config()
	counter := testenv.Count(config)
	operator := operators.Start(b.t, config, b.namespace, registry, func(o *kopf.Options) {
		o.Settings.Queueing.ContentionDelays = delays
		o.Settings.Peering.Standalone = true
		o.Settings.Persistence.Finalizer = prefix + "/finalizer"
		o.Settings.Persistence.DiffBase = storage.AnnotationsDiffBase{Prefix: prefix}
		o.Settings.Persistence.Progress = storage.AnnotationsProgress{Prefix: prefix}
		for _, more := range configure {
			more(o)
		}
	})
	return party{operator, counter}
}

func (p party) writes() int { return p.Snapshot().Writes("kopfexamples") }

// contentions returns the events about contention, with their counts.
func (b *bench) contentions() []string {
	b.t.Helper()
	list := &corev1.EventList{}
	b.Expect(cluster.Client().List(b.t.Context(), list, client.InNamespace(b.namespace))).To(gomega.Succeed())
	var all []string
	for _, event := range list.Items {
		if event.Reason == "FieldContention" {
			all = append(all, event.Type+" "+event.Message)
		}
	}
	slices.Sort(all)
	return all
}

// expectContentions waits for the number of events, each with all of the words.
func (b *bench) expectContentions(count types.GomegaMatcher, words ...string) {
	b.t.Helper()
	b.Eventually(b.contentions).Should(gomega.WithTransform(func(all []string) int { return len(all) }, count))
	for _, event := range b.contentions() {
		for _, word := range words {
			b.Expect(strings.Contains(event, word)).To(gomega.BeTrue(), "%q in %s", word, event)
		}
	}
}

func (b *bench) create() {
	b.t.Helper()
	b.Expect(cluster.Client().Create(b.t.Context(), b.object)).To(gomega.Succeed())
}

// set writes spec.x as another client.
func (b *bench) set(owner, x string) error {
	changed := testenv.NewObject("KopfExample", b.namespace, "bone", nil)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"x":"`+x+`"}}`))
	return cluster.Client().Patch(b.t.Context(), changed, patch, client.FieldOwner(owner))
}

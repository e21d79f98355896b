package contention

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/testenv"
)

const (
	brief = 50 * time.Millisecond
	calm  = 500 * time.Millisecond
	// most is the maximum number of writes by one operator until the contention is
	// detected: each round takes two, and a pass may have begun another one.
	most = 40
)

// If one operator slows down first, the other one may have nothing left to undo.
var oneEach = gomega.BeElementOf(1, 2)

// Two operators that undo each other's changes both detect this, slow down, and post one
// event each. Nothing else happens.
func TestContendingOperatorsAreSlowedDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, two := b.operator("one.example.com", "a", time.Hour), b.operator("two.example.com", "b", time.Hour)
	b.create()
	b.expectContentions(oneEach)
	b.Eventually(b.quiet(one, two)).Should(gomega.BeTrue())
	b.expectContentions(oneEach, "Warning ", "spec.x", `the field manager "kopf" (Update at 2`, "Let only one of them write")
	b.Expect(one.writes()).To(gomega.BeNumerically("<=", most), one.String)
	b.Expect(two.writes()).To(gomega.BeNumerically("<=", most), two.String)

	b.Expect(cluster.Client().Delete(t.Context(), b.object)).To(gomega.Succeed())
	b.Eventually(cluster.Exists(b.object)).Should(gomega.BeFalse(), "a deletion does not wait for the end of the contention")
}

// The event of each operator names both field managers, so that a person knows which two programs
// fight. Operators without names have the same one, and the event says how to tell them apart.
func TestContentionNamesBothOperators(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run(wanting("a"), "one.example.com", []time.Duration{time.Hour}, named("first"))
	b.run(wanting("b"), "two.example.com", []time.Duration{time.Hour}, named("second"))
	b.create()
	b.expectContentions(oneEach, "Warning ", "spec.x", `"first"`, `"second"`)

	same := newBench(t)
	same.operator("one.example.com", "a", time.Hour)
	same.operator("two.example.com", "b", time.Hour)
	same.create()
	same.expectContentions(oneEach, `the field manager "kopf" (Update at 2`, "settings.Name")
}

// quiet reports whether all writes have stopped.
func (b *bench) quiet(parties ...party) func() bool {
	return func() bool {
		before := total(parties)
		select {
		case <-time.After(calm):
		case <-b.t.Context().Done():
		}
		return before == total(parties)
	}
}

func total(parties []party) int {
	all := 0
	for _, p := range parties {
		all += p.writes()
	}
	return all
}

// The metrics count the objects that are slowed down, until the contention has ended.
func TestContendedObjectsAreCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one := b.run(wanting("a"), "one.example.com", []time.Duration{brief}, named(b.namespace))
	two := b.run(wanting("b"), "two.example.com", []time.Duration{brief}, named(b.namespace+"-2"))
	b.create()
	b.Eventually(contended(b.namespace)).Should(gomega.Equal(1.0), one.String)
	two.Stop()
	b.Eventually(contended(b.namespace)).Should(gomega.BeZero(), one.String)
}

// contended returns how many objects of an operator are slowed down, according to the metrics; below zero if they do not say.
func contended(operator string) func() (float64, error) {
	return func() (float64, error) {
		families, err := metrics.Registry.Gather()
		for _, family := range families {
			if family.GetName() != "kopf_objects_contended" {
				continue
			}
			for _, metric := range family.GetMetric() {
				for _, label := range metric.GetLabel() {
					if label.GetName() == "operator" && label.GetValue() == operator {
						return metric.GetGauge().GetValue(), err
					}
				}
			}
		}
		return -1, err
	}
}

// The contention continues slowly. When one operator stops, the other one's value stays.
func TestContentionEndsWithOneOfTheOperators(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, two := b.operator("one.example.com", "a", brief), b.operator("two.example.com", "b", brief)
	b.create()
	b.expectContentions(gomega.Equal(2), "Warning ", "spec.x")
	before := one.writes() + two.writes()
	b.Eventually(func() int { return one.writes() + two.writes() }).Should(gomega.BeNumerically(">", before+4), "it was only slowed down")
	two.Stop()
	b.Eventually(cluster.Current(b.object)).Should(testenv.HavePath("spec.x", "a"))
	b.Eventually(b.quiet(one)).Should(gomega.BeTrue())
	b.expectContentions(gomega.Equal(2))

	b.Expect(b.set("somebody", "c")).To(gomega.Succeed())
	b.Eventually(cluster.Current(b.object)).Should(testenv.HavePath("spec.x", "a"))
}

// The event names the writer that undoes the operator's writes.
func TestContendingToolIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one := b.operator("one.example.com", "a", time.Hour)
	b.create()
	for range 2 * 10 {
		b.Eventually(func() bool {
			current, err := cluster.Current(b.object)()
			return err == nil && current.Object["spec"].(map[string]any)["x"] == "a" || len(b.contentions()) > 0
		}).Should(gomega.BeTrue())
		b.Expect(b.set("rival", "b")).To(gomega.Succeed())
	}
	b.expectContentions(gomega.Equal(1), "spec.x", `the field manager "rival" (Update at 2`)
	b.Expect(one.writes()).To(gomega.BeNumerically("<=", most), one.String)
}

// Two operators that store their records in the same annotations but have different handlers
// trigger each other endlessly.
func TestOperatorsWithTheSameRecordsAreDetected(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	nothing := func(context.Context, *kopf.Change) error { return nil }
	plain, detailed := kopf.NewRegistry(), kopf.NewRegistry()
	plain.OnUpdate(kopf.Resource("kopfexamples"), nothing, kopf.ID("plain"))
	detailed.OnField(kopf.Resource("kopfexamples"), "status.phase", nothing, kopf.ID("detailed"))
	b.object.Object["status"] = map[string]any{"phase": "new"}
	b.create()
	b.object.Object["status"] = map[string]any{"phase": "new"}
	b.Expect(cluster.Client().Status().Update(t.Context(), b.object)).To(gomega.Succeed())
	one := b.run(plain, storage.DefaultPrefix, []time.Duration{time.Hour})
	two := b.run(detailed, storage.DefaultPrefix, []time.Duration{time.Hour})
	b.expectContentions(oneEach)
	b.Eventually(b.quiet(one, two)).Should(gomega.BeTrue())
	b.expectContentions(oneEach, "metadata.annotations", "last-handled-configuration", "give one of the operators another prefix and finalizer")
	b.Expect(one.writes()).To(gomega.BeNumerically("<=", most), one.String)
	b.Expect(two.writes()).To(gomega.BeNumerically("<=", most), two.String)
}

// Quick edits by a person, writes of others to other fields, and the operator's own writes are
// not contention.
func TestOtherWritesAreNotContention(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := kopf.NewRegistry()
	registry.OnUpdate(kopf.Resource("kopfexamples"), func(_ context.Context, c *kopf.Change) error {
		c.Patch().Set("a", "spec", "x")
		return nil
	}, kopf.ID("want"))
	registry.Timer(kopf.Resource("kopfexamples"), func(_ context.Context, c *kopf.Tick) error {
		phase, _ := c.Status().String("phase")
		next := map[string]string{"": "even", "even": "odd", "odd": "even"}
		c.Patch().Set(next[phase], "status", "phase")
		return nil
	}, kopf.ID("tick"), kopf.Interval(20*time.Millisecond))
	one := b.run(registry, "one.example.com", []time.Duration{time.Hour})
	b.create()
	// An edit before the first look at the object would be a part of its creation.
	b.Eventually(cluster.Current(b.object)).Should(testenv.HaveAnnotation("one.example.com/last-handled-configuration", gomega.Not(gomega.BeEmpty())))
	for _, x := range []string{"b", "c", "b", "c", "b", "c"} {
		b.Expect(b.set("kubectl-edit", x)).To(gomega.Succeed())
		b.Eventually(cluster.Current(b.object)).Should(testenv.HavePath("spec.x", "a"))
	}
	before := one.writes()
	b.Eventually(one.writes).Should(gomega.BeNumerically(">", before+20), "the timer goes on")
	b.expectContentions(gomega.BeZero())
}

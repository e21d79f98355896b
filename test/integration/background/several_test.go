package background

import (
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// Operators with separate registries in one process share neither supervisors nor indices
// nor the values of a common memo.
func TestOperatorsWithSeparateRegistriesShareNothing(t *testing.T) {
	t.Parallel()
	one, two := newBench(t), newBench(t)
	ones, twos := &library{}, &library{}
	firstTiers, secondTiers := one.declareAll(ones), two.declareAll(twos)
	two.Timer(examples, two.counting("timed"), kopf.ID("timed"), kopf.Interval(brief))
	first := one.start()
	two.start()
	one.labelled("same", "tier", "one")
	obj := two.labelled("same", "tier", "two")
	one.expectRunning("watch same", 1, 1)
	two.expectRunning("watch same", 1, 1)
	first.Stop()
	one.expectRunning("watch same", 0, 1)
	one.Expect(firstTiers.Len()).To(gomega.BeZero())

	now := two.runs.count("timed same")()
	two.Eventually(cluster.Current(obj)).Should(testenv.HavePath("status.timed", gomega.BeNumerically(">", now+3)))
	two.expectRunning("watch same", 1, 1)
	two.Expect(content(secondTiers)()).To(gomega.Equal(map[string][]string{"two": {"same"}}))
	two.Expect(ones.all()).To(gomega.HaveLen(1))
	two.Expect(twos.all()).To(gomega.HaveLen(1))
	two.Expect(ones.known[0]).NotTo(gomega.BeIdenticalTo(twos.known[0]))
}

// Two operators of the same objects have separate finalizers: an object is deleted when both
// have released it.
func TestOperatorsOfTheSameObjectsUseSeparateFinalizers(t *testing.T) {
	t.Parallel()
	const other = "example.com/other"
	one, two := newBench(t), newBench(t)
	two.namespace = one.namespace
	g := newGate()
	defer g.open()
	one.Daemon(examples, one.counted("watch", one.untilStopped), kopf.ID("watch"))
	two.Daemon(examples, two.counted("watch", two.slowToStop(g)), kopf.ID("watch"))
	one.start()
	two.start(func(o *kopf.Options) { o.Settings.Persistence.Finalizer = other })
	obj := one.create("one", nil)
	one.expectRunning("watch one", 1, 1)
	two.expectRunning("watch one", 1, 1)
	one.Expect(one.current(obj).GetFinalizers()).To(gomega.ConsistOf(finalizer, other))
	one.remove(obj)
	two.arrived(g)
	one.expectRunning("watch one", 0, 1)
	one.expectReleased(obj)
	one.Expect(one.current(obj).GetFinalizers()).To(gomega.ConsistOf(other))
	g.open()
	one.expectGone(obj)
	one.expectRest()
	two.expectRest()
	one.Expect(one.calls.All()).To(gomega.Equal([]string{"one deleted|signaled"}))
	two.Expect(two.calls.All()).To(gomega.Equal([]string{"one deleted|signaled"}))
}

// declareAll declares handlers of all kinds.
func (b *bench) declareAll(l *library) *kopf.Index[string, string] {
	b.declareAuthors(l)
	b.Daemon(examples, b.counted("watch", b.untilStopped), kopf.ID("watch"))
	return b.tiers()
}

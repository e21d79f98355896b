package handling

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestDeletionSupersedesAFailingCreation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", fail(kopf.Temporary(errNotYet, long))), kopf.ID("create"))
	b.OnDelete(examples, b.noted("delete", succeed), kopf.ID("delete"))
	b.start()
	obj := b.create("one", nil)
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"create", gomega.ContainSubstring("delayed")))
	b.remove(obj)
	b.expectGone(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create 0", "delete 0"}))
	b.Eventually(b.logged("The creation is superseded by the deletion.")).Should(gomega.HaveLen(1))
}

func TestDeletionWaitsForARunningCreation(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	b.OnCreate(examples, b.noted("create", func(context.Context, *kopf.Change) error { g.pass(); return nil }), kopf.ID("create"))
	b.OnCreate(examples, b.noted("other", succeed), kopf.ID("other"))
	b.OnDelete(examples, b.noted("delete", succeed), kopf.ID("delete"))
	b.start()
	obj := b.create("one", nil)
	<-g.entered
	b.remove(obj)
	close(g.opened)
	b.expectGone(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create 0", "other 0", "delete 0"}))
}

func TestDeletionIsRetriedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnDelete(examples, b.noted("retried", failing(3, 100*time.Millisecond)), kopf.ID("retried"))
	b.OnDelete(examples, b.noted("quick", succeed), kopf.ID("quick"))
	b.OnDelete(examples, b.noted("limited", fail(errBroken)), kopf.ID("limited"), kopf.Retries(2), kopf.Backoff(0))
	b.start()
	obj := b.create("one", nil)
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveFinalizer(finalizer))
	b.remove(obj)
	b.expectGone(obj)
	b.expectRest()
	b.Expect(b.calls.Of("retried")).To(gomega.Equal(attempts("retried", 4)))
	b.Expect(b.calls.Of("quick")).To(gomega.Equal(attempts("quick", 1)))
	b.Expect(b.calls.Of("limited")).To(gomega.Equal(attempts("limited", 2)))
}

// Changes of an object that is being deleted are ignored.
func TestUpdateDuringADeletionIsIgnored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnUpdate(examples, b.noted("update", succeed), kopf.ID("update"))
	b.OnDelete(examples, b.noted("delete", func(_ context.Context, c *kopf.Change) error {
		if value, _ := c.Spec().String("field"); value != "2" {
			return kopf.Temporary(errNotYet, 100*time.Millisecond)
		}
		return nil
	}), kopf.ID("delete"))
	b.start()
	obj := b.withFieldOne()
	b.remove(obj)
	b.Eventually(func() []string { return b.calls.Of("delete") }).ShouldNot(gomega.BeEmpty())
	b.setField(obj, "2")
	b.expectGone(obj)
	b.Expect(b.calls.Of("update")).To(gomega.BeEmpty())
}

func TestOptionalDeletionHandlerDoesNotHoldTheObject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", succeed), kopf.ID("create"))
	b.OnDelete(examples, b.noted("delete", succeed), kopf.ID("delete"), kopf.Optional())
	b.start()
	obj := b.create("one", nil)
	b.Expect(b.expectHandled(obj)).NotTo(testenv.HaveFinalizer(finalizer))
	b.remove(obj)
	b.expectGone(obj)
	b.expectRest()
}

func TestFinalizerFollowsTheFilters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", succeed), kopf.ID("create"))
	b.OnDelete(examples, b.noted("delete", succeed), kopf.ID("delete"), kopf.Labels(map[string]kopf.Matcher{"held": kopf.Present()}))
	b.start()
	obj := b.create("one", nil)
	b.Expect(b.expectHandled(obj)).NotTo(testenv.HaveFinalizer(finalizer))
	b.patch(obj, `{"metadata":{"labels":{"held":""}}}`)
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveFinalizer(finalizer))
	b.patch(obj, `{"metadata":{"labels":{"held":null}}}`)
	b.Eventually(cluster.Current(obj)).ShouldNot(testenv.HaveFinalizer(finalizer))
	b.remove(obj)
	b.expectGone(obj)
	b.expectRest()
	b.Expect(b.calls.Of("delete")).To(gomega.BeEmpty())
}

func TestFinalizersOfOthersAreKept(t *testing.T) {
	t.Parallel()
	const theirs = "example.com/theirs"
	b := newBench(t)
	b.OnDelete(examples, b.noted("delete", func(_ context.Context, c *kopf.Change) error {
		c.SetResult("deleted")
		c.Patch().SetLabel("deleted", "yes")
		return nil
	}), kopf.ID("delete"))
	b.start()
	obj := testenv.NewObject("KopfExample", b.namespace, "one", nil)
	obj.SetFinalizers([]string{theirs})
	b.submit(obj)
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveFinalizer(finalizer))
	b.remove(obj)
	b.Eventually(cluster.Current(obj)).ShouldNot(testenv.HaveFinalizer(finalizer))
	b.expectRest()
	left := b.current(obj)
	b.Expect(left).To(gomega.SatisfyAll(
		testenv.HaveFinalizer(theirs), testenv.HaveAnnotation(prefix+"delete", nil),
		testenv.HavePath("status.delete", "deleted"), testenv.HavePath("metadata.labels.deleted", "yes"),
	), "what the handlers have left is kept as long as the object is")
	b.patch(obj, `{"metadata":{"labels":{"other":"x"}}}`)
	b.expectRest()
	b.patch(obj, `{"metadata":{"finalizers":null}}`)
	b.expectGone(obj)
	b.Expect(b.calls.All()).To(gomega.Equal(attempts("delete", 1)))
}

// The removal of the last finalizer is the last write: nothing else would be kept.
func TestNothingElseIsWrittenWithTheLastFinalizer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnDelete(examples, func(_ context.Context, c *kopf.Change) error {
		c.SetResult("deleted")
		c.Patch().SetLabel("deleted", "yes")
		return nil
	}, kopf.ID("delete"))
	b.start()
	obj := b.create("one", nil)
	b.expectHandled(obj)
	b.expectRest()
	b.requests.Reset()
	b.remove(obj)
	b.expectGone(obj)
	b.expectRest()
	b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(1), b.requests.String)
}

func TestRecreatedObjectIsHandledAsNew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", succeed), kopf.ID("create"))
	b.OnDelete(examples, b.noted("delete", succeed), kopf.ID("delete"))
	b.start()
	for range 3 {
		obj := b.create("one", nil)
		b.expectHandled(obj)
		b.remove(obj)
		b.expectGone(obj)
	}
	b.Expect(b.calls.Of("create")).To(gomega.Equal([]string{"create 0", "create 0", "create 0"}))
	b.Expect(b.calls.Of("delete")).To(gomega.Equal([]string{"delete 0", "delete 0", "delete 0"}))
}

// An earlier version of the operator had deletion handlers.
func TestUnneededFinalizerIsRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var objects []*unstructuredObject
	for _, name := range []string{"going", "staying"} {
		obj := testenv.NewObject("KopfExample", b.namespace, name, nil)
		obj.SetFinalizers([]string{"example.com/theirs", finalizer})
		obj.SetAnnotations(map[string]string{handled: `{}`})
		objects = append(objects, b.submit(obj))
	}
	b.remove(objects[0])
	b.OnCreate(examples, succeed)
	b.start()
	for _, obj := range objects {
		b.Eventually(cluster.Current(obj)).ShouldNot(testenv.HaveFinalizer(finalizer))
		b.Expect(b.current(obj)).To(testenv.HaveFinalizer("example.com/theirs"))
	}
}

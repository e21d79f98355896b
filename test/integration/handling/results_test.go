package handling

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// returning is a handler with a result.
func returning(result any) func(context.Context, *kopf.Change) error {
	return func(_ context.Context, c *kopf.Change) error {
		c.SetResult(result)
		return nil
	}
}

func TestResultsAreStoredInTheStatus(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		selector kopf.Selector
		kind     string
		writes   int
	}{
		"with a status subresource":  {examples, "KopfExample", 2},
		"without the subresource":    {noStatuses, "KopfNoStatus", 1},
		"of a cluster-scoped object": {clusters, "KopfCluster", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(test.selector, returning(map[string]any{"number": 1, "list": []string{"a"}}), kopf.ID("mapping"), b.ours())
			b.OnCreate(test.selector, returning("text"), kopf.ID("text"), b.ours())
			b.OnCreate(test.selector, returning(nil), kopf.ID("nothing"), b.ours())
			b.OnCreate(test.selector, b.noted("retried", failing(1, 0)), kopf.ID("retried"), b.ours())
			b.start()
			obj := b.own(testenv.NewObject(test.kind, b.namespace, b.namespace, nil))
			if test.kind == "KopfCluster" {
				obj.SetNamespace("")
			}
			b.submit(obj)
			b.Expect(b.expectHandled(obj)).To(testenv.HavePath("status", map[string]any{
				"mapping": map[string]any{"number": int64(1), "list": []any{"a"}}, "text": "text",
			}))
			b.expectRest()
			// One more write for the second attempt of the last one.
			b.Expect(b.requests.Snapshot().Writes(b.resource(test.kind))).To(gomega.Equal(test.writes+1), b.requests.String)
			b.Expect(b.calls.All()).To(gomega.Equal(attempts("retried", 2)))
		})
	}
}

func (b *bench) resource(kind string) string {
	return map[string]string{"KopfExample": "kopfexamples", "KopfNoStatus": "kopfnostatuses", "KopfCluster": "kopfclusters"}[kind]
}

func TestLaterResultIsMergedIntoTheEarlierOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, on := range []func(func(context.Context, *kopf.Change) error){
		func(fn func(context.Context, *kopf.Change) error) { b.OnCreate(examples, fn, kopf.ID("fn")) },
		func(fn func(context.Context, *kopf.Change) error) { b.OnUpdate(examples, fn, kopf.ID("fn")) },
	} {
		on(func(_ context.Context, c *kopf.Change) error {
			field, _ := c.Spec().String("field")
			c.SetResult(map[string]any{"key" + field: field, "list": []string{field}})
			return nil
		})
	}
	b.start()
	obj := b.withFieldOne()
	b.setField(obj, "2")
	b.expectHandled(obj)
	b.Expect(b.current(obj)).To(testenv.HavePath("status.fn", map[string]any{"key1": "1", "key2": "2", "list": []any{"2"}}))
}

// As in docs/results.md.
func TestHandlerThatNeedsAResultWaitsForIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, returning(map[string]any{"volume": "vol-1"}), kopf.ID("createVolume"))
	b.OnCreate(examples, b.noted("fill", func(_ context.Context, c *kopf.Change) error {
		volume, ok := c.Status().String("createVolume", "volume")
		if !ok {
			return kopf.Temporary(errors.New("the volume is not created yet"), 0)
		}
		c.SetResult("filled " + volume)
		return nil
	}), kopf.ID("fillVolume"))
	b.start()
	obj := b.create("one", nil)
	b.Expect(b.expectHandled(obj)).To(testenv.HavePath("status.fillVolume", "filled vol-1"))
	b.Expect(b.calls.All()).To(gomega.Equal(attempts("fill", 2)))
}

// The API server silently drops fields that the schema does not have.
func TestPrunedResultIsReportedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(pruneds, b.noted("create", returning("lost")), kopf.ID("create"))
	b.OnUpdate(pruneds, b.noted("update", returning(map[string]any{"a": 1, "b": 2})), kopf.ID("update"))
	b.OnCreate(pruneds, b.noted("known", returning("kept")), kopf.ID("known"))
	b.start()
	one := b.submit(testenv.NewObject("KopfPruned", b.namespace, "one", nil))
	two := b.submit(testenv.NewObject("KopfPruned", b.namespace, "two", nil))
	b.expectHandled(one)
	b.expectHandled(two)
	b.patch(one, `{"spec":{"field":"x"}}`)
	b.Expect(b.expectHandled(one)).To(testenv.HavePath("status", map[string]any{"known": "kept"}))
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.ConsistOf("create 0", "known 0", "create 0", "known 0", "update 0"))
	b.Eventually(b.logged("dropped fields", `"status.create"`)).Should(gomega.HaveLen(1))
	b.Eventually(b.logged("dropped fields", `"status.update"`)).Should(gomega.HaveLen(1))
	b.Eventually(b.logged("dropped fields")).Should(gomega.HaveLen(2))
	b.Eventually(func() (events []string, err error) {
		for _, obj := range []*unstructuredObject{one, two} {
			own, failure := cluster.Events(obj)()
			events, err = append(events, own...), errors.Join(err, failure)
		}
		return slices.DeleteFunc(events, func(e string) bool { return !strings.Contains(e, "PrunedFields") }), err
	}).Should(gomega.ConsistOf(gomega.HaveSuffix("status.create"), gomega.HaveSuffix("status.update")))
}

func TestRejectedEditFailsOnlyItsHandler(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		handler func(context.Context, *kopf.Change) error
		problem string
	}{
		"a result of a wrong type": {returning(map[string]any{"a": 1}), "status.number"},
		"a patch of a wrong type": {func(_ context.Context, c *kopf.Change) error {
			c.Patch().Set("many", "spec", "number")
			return nil
		}, "spec.number"},
		"a transformation to a wrong type": {func(_ context.Context, c *kopf.Change) error {
			c.Patch().Apply(func(obj *unstructuredObject) error { obj.Object["spec"] = map[string]any{"number": "many"}; return nil })
			return nil
		}, "spec.number"},
		"an invalid name of a label": {func(_ context.Context, c *kopf.Change) error {
			c.Patch().SetLabel("in valid", "x")
			return nil
		}, "metadata.labels"},
		"annotations that are too long": {func(_ context.Context, c *kopf.Change) error {
			c.Patch().SetAnnotation("long", longText(300<<10))
			return nil
		}, "metadata.annotations"},
		"a request that is too large": {func(_ context.Context, c *kopf.Change) error {
			c.Patch().Set(longText(4<<20), "status", "conditions")
			return nil
		}, "too large"},
		"an object that is too large to be sent to the storage": {func(_ context.Context, c *kopf.Change) error {
			c.Patch().Set(longText(2<<20), "status", "conditions")
			return nil
		}, "larger than max"},
		"an object that is too large for the storage": {func(_ context.Context, c *kopf.Change) error {
			c.Patch().Set(longText(1700<<10), "status", "conditions")
			return nil
		}, "too large"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			stricts := kopf.Resource("one.example.com", "stricts")
			b.OnCreate(stricts, b.noted("before", returning(nil)), kopf.ID("before"))
			b.OnCreate(stricts, b.noted("number", test.handler), kopf.ID("number"))
			b.OnCreate(stricts, b.noted("text", returning("kept")), kopf.ID("text"))
			b.OnCreate(stricts, b.noted("retried", failing(1, 0)), kopf.ID("retried"))
			b.start()
			obj := b.submit(strict(b, map[string]any{"number": int64(1)}))
			b.Expect(b.expectHandled(obj)).To(testenv.HavePath("status", map[string]any{"text": "kept"}))
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.Equal([]string{"before 0", "number 0", "text 0", "retried 0", "retried 1"}))
			b.Eventually(b.logged("The creation is processed: 3 succeeded; 1 failed.")).Should(gomega.HaveLen(1))
			b.Eventually(b.logged("the handler failed", `"handler"="number"`, test.problem)).Should(gomega.HaveLen(1))
			b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.SatisfyAll(
				gomega.HavePrefix("Warning WriteRejected: Handler number failed"), gomega.ContainSubstring(test.problem))))
		})
	}
}

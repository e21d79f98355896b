package background

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// crowd creates many objects with several clients.
func (b *bench) crowd(kind string, count int) {
	b.t.Helper()
	const clients = 10
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			for i := client; i < count; i += clients {
				b.submit(testenv.NewObject(kind, b.namespace, fmt.Sprint("object-", i), nil))
			}
		})
	}
	running.Wait()
}

func TestIndicesAreCompleteBeforeHandlersAreCalled(t *testing.T) {
	t.Parallel()
	const objects = 100
	for _, workers := range []int{1, 100} {
		t.Run(fmt.Sprint("with workers: ", workers), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.declareLookers()
			b.crowd("KopfExample", objects)
			b.crowd("KopfNoStatus", objects)
			b.start(func(o *kopf.Options) { o.Settings.Execution.Workers = workers })
			seen := func() []string { return slices.Compact(slices.Sorted(slices.Values(b.calls.All()))) }
			what := fmt.Sprintf(" sees %d and %d", objects, objects)
			b.Eventually(seen).Should(gomega.Equal([]string{"create" + what, "daemon" + what, "event" + what, "timer" + what}))
			b.Eventually(func() int { return len(b.calls.All()) }).Should(gomega.BeNumerically(">=", 4*objects))
			b.Expect(seen()).To(gomega.HaveLen(4))
			b.Expect(b.requests.Snapshot().Writes("kopfnostatuses")).To(gomega.BeZero(), b.requests.String)
		})
	}
}

// declareLookers declares an index of the same resource and one of another, and handlers
// that record the sizes of both.
func (b *bench) declareLookers() {
	all := func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		return map[string]string{"all": i.Name()}, nil
	}
	own := kopf.NewIndex(b.Registry, examples, all, kopf.ID("own"))
	other := kopf.NewIndex(b.Registry, noStatuses, all, kopf.ID("other"))
	look := func(who string) { b.calls.Note("%s sees %d and %d", who, len(own.Get("all")), len(other.Get("all"))) }
	b.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { look("event"); return nil }, kopf.ID("event"))
	b.OnCreate(examples, func(context.Context, *kopf.Change) error { look("create"); return nil }, kopf.ID("create"))
	b.Timer(examples, func(context.Context, *kopf.Tick) error { look("timer"); return nil }, kopf.ID("timer"))
	b.Daemon(examples, func(context.Context, *kopf.Task) error { look("daemon"); return nil }, kopf.ID("daemon"))
}

// tiers is an index of names by a label.
func (b *bench) tiers() *kopf.Index[string, string] {
	return kopf.NewIndex(b.Registry, examples, func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		return map[string]string{i.Labels()["tier"]: i.Name()}, nil
	}, kopf.ID("tiers"), kopf.Labels(map[string]kopf.Matcher{"tier": kopf.Present()}))
}

// content returns the sorted values of each key.
func content(tiers *kopf.Index[string, string]) func() map[string][]string {
	return func() map[string][]string {
		all := map[string][]string{}
		for tier, names := range tiers.All() {
			all[tier] = slices.Sorted(slices.Values(names))
		}
		return all
	}
}

func TestIndexFollowsItsObjects(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tiers := b.tiers()
	first := b.labelled("one", "tier", "web")
	b.Expect(tiers.Len()).To(gomega.BeZero(), "the index is empty")
	operator := b.start()
	b.Expect(content(tiers)()).To(gomega.Equal(map[string][]string{"web": {"one"}}), "it is filled when the operator is ready")
	second, third := b.labelled("two", "tier", "web"), b.labelled("three", "other", "label")
	b.Eventually(content(tiers)).Should(gomega.Equal(map[string][]string{"web": {"one", "two"}}))
	b.patch(first, `{"metadata":{"labels":{"tier":"db"}}}`)
	b.Eventually(content(tiers)).Should(gomega.Equal(map[string][]string{"web": {"two"}, "db": {"one"}}))
	b.patch(second, `{"metadata":{"labels":{"tier":null}}}`)
	b.patch(third, `{"metadata":{"labels":{"tier":"db"}}}`)
	b.Eventually(content(tiers)).Should(gomega.Equal(map[string][]string{"db": {"one", "three"}}))
	operator.Stop()
	b.Expect(tiers.Len()).To(gomega.BeZero(), "it is empty when the operator has ended")

	b.start()
	b.Expect(content(tiers)()).To(gomega.Equal(map[string][]string{"db": {"one", "three"}}))
	b.remove(first)
	b.remove(third)
	b.expectGoneAtOnce(first)
	b.Eventually(tiers.Len).Should(gomega.BeZero())
	b.expectWrites(0)
	b.Expect(b.current(second).GetAnnotations()).To(gomega.BeEmpty())
}

// A handler that is called for a change finds it in the index.
func TestObjectIsIndexedBeforeItsHandlersAreCalled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tiers := b.tiers()
	look := func(c *kopf.Change) {
		tier := c.Labels()["tier"]
		b.calls.Note("%s %s %t", c.Reason(), tier, slices.Contains(tiers.Get(tier), c.Name()))
	}
	fn := func(_ context.Context, c *kopf.Change) error { look(c); return nil }
	b.OnCreate(examples, fn, kopf.ID("fn"))
	b.OnUpdate(examples, fn, kopf.ID("fn"))
	b.OnDelete(examples, fn, kopf.ID("fn"))
	b.start()
	obj := b.labelled("one", "tier", "0")
	expected := []string{"create 0 true"}
	b.Eventually(b.calls.All).Should(gomega.Equal(expected))
	for i := range 5 {
		b.patch(obj, fmt.Sprintf(`{"metadata":{"labels":{"tier":"%d"}}}`, i+1))
		expected = append(expected, fmt.Sprintf("update %d true", i+1))
		b.Eventually(b.calls.All).Should(gomega.Equal(expected))
	}
	b.remove(obj)
	b.expectGone(obj)
	b.Expect(b.calls.All()).To(gomega.Equal(append(expected, "delete 5 true")), "it is there until it is gone")
	b.Eventually(tiers.Len).Should(gomega.BeZero())
}

func TestIndexIsUsedByOneOperatorAtATime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tiers := b.tiers()
	operator := b.start()
	second := kopf.Options{Registry: b.Registry, Config: cluster.Config(), Logger: b.logs.Logger()}
	second.Settings.Scope.Namespaces = []string{b.namespace}
	b.Expect(kopf.Run(t.Context(), second)).To(gomega.MatchError(gomega.SatisfyAll(
		gomega.ContainSubstring(`the index "tiers"`), gomega.ContainSubstring("indices_test.go:"))))
	b.labelled("one", "tier", "web")
	b.Eventually(content(tiers)).Should(gomega.Equal(map[string][]string{"web": {"one"}}), "the first one goes on")
	operator.Stop()
	b.start()
	b.Expect(content(tiers)()).To(gomega.Equal(map[string][]string{"web": {"one"}}))
}

// The objects have the same name and the same keys.
func TestOneIndexIsFilledFromSeveralResources(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	byTier := func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		return map[string]string{i.Labels()["tier"]: i.Resource().Kind}, nil
	}
	tiers := kopf.NewIndex(b.Registry, examples, byTier, kopf.ID("tiers"), kopf.Labels(map[string]kopf.Matcher{"tier": kopf.Present()}))
	kopf.FillIndex(b.Registry, tiers, noStatuses, byTier, kopf.ID("tiers"))
	kopf.FillIndex(b.Registry, tiers, examples, func(context.Context, *kopf.Indexed) (map[string]string, error) {
		return map[string]string{"second": "function"}, nil
	}, kopf.ID("second"))
	example := b.labelled("one", "tier", "web")
	other := testenv.NewObject("KopfNoStatus", b.namespace, "one", nil)
	other.SetLabels(map[string]string{"tier": "web"})
	b.submit(other)
	b.start()
	b.Expect(content(tiers)()).To(gomega.Equal(map[string][]string{"web": {"KopfExample", "KopfNoStatus"}, "second": {"function"}}))
	b.patch(example, `{"metadata":{"labels":{"tier":"db"}}}`)
	b.Eventually(content(tiers)).Should(gomega.Equal(map[string][]string{"web": {"KopfNoStatus"}, "db": {"KopfExample"}, "second": {"function"}}))
	b.remove(example)
	b.Eventually(content(tiers)).Should(gomega.Equal(map[string][]string{"web": {"KopfNoStatus"}}))
	b.remove(other)
	b.Eventually(tiers.Len).Should(gomega.BeZero())
}

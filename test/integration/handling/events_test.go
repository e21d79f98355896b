package handling

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// watching records each event: "name TYPE".
func (b *bench) watching(then func(context.Context, *kopf.WatchEvent) error) func(context.Context, *kopf.WatchEvent) error {
	return func(ctx context.Context, e *kopf.WatchEvent) error {
		b.calls.Note("%s %s", e.Name(), e.Type())
		return then(ctx, e)
	}
}

func ignore(context.Context, *kopf.WatchEvent) error { return nil }

func TestEventsAreHandledInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
		field, _ := e.Spec().String("field")
		b.calls.Note("%s %s with %s", e.Name(), e.Type(), field)
		return nil
	}, kopf.ID("event"))
	b.create("old", map[string]any{"field": "0"})
	b.start()
	obj := b.create("one", map[string]any{"field": "0"})
	expected := []string{"one ADDED with 0"}
	for i := range 20 {
		b.setField(obj, fmt.Sprint(i+1))
		expected = append(expected, fmt.Sprintf("one MODIFIED with %d", i+1))
	}
	b.remove(obj)
	expected = append(expected, "one DELETED with 20")
	b.Eventually(func() []string { return b.calls.Of("one") }).Should(gomega.Equal(expected))
	b.Expect(b.calls.Of("old")).To(gomega.Equal([]string{"old  with 0"}), "what was there before has no type")
	b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero())
}

func TestEventsOfReplacedObjectAreHandled(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	b.OnEvent(examples, b.watching(func(_ context.Context, e *kopf.WatchEvent) error {
		if e.Type() == "ADDED" {
			g.pass()
		}
		return nil
	}), kopf.ID("event"))
	b.start()
	for range 2 {
		obj := b.create("one", nil)
		b.setField(obj, "1")
		b.remove(obj)
	}
	close(g.opened)
	b.Eventually(b.calls.All).Should(gomega.Equal([]string{
		"one ADDED", "one MODIFIED", "one DELETED", "one ADDED", "one MODIFIED", "one DELETED",
	}))
}

func TestEventHandlersHaveFilters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnEvent(examples, b.watching(ignore), kopf.ID("label"), kopf.Labels(map[string]kopf.Matcher{"wanted": kopf.Equal("yes")}))
	b.OnEvent(examples, b.watching(ignore), kopf.ID("field"), kopf.Field("spec", "field"), kopf.Value(kopf.Equal("2")))
	b.OnEvent(examples, b.watching(ignore), kopf.ID("when"), kopf.When(func(a kopf.Arguments) bool { return a.Name() == "never" }))
	b.start()
	obj := b.create("one", map[string]any{"field": "1"})
	b.setField(obj, "2")
	b.patch(obj, `{"spec":{"field":"3"},"metadata":{"labels":{"wanted":"yes"}}}`)
	b.remove(obj)
	b.Eventually(b.calls.All).Should(gomega.Equal([]string{"one MODIFIED", "one MODIFIED", "one DELETED"}))
}

func TestPatchesAndResultsOfEventHandlersAreWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnEvent(examples, b.watching(func(_ context.Context, e *kopf.WatchEvent) error {
		e.Patch().Set("constant", "spec", "field")
		e.Patch().SetLabel("seen", "yes")
		e.SetResult(map[string]any{"name": e.Name()})
		return nil
	}), kopf.ID("event"))
	b.start()
	obj := b.create("one", nil)
	b.Eventually(cluster.Current(obj)).Should(gomega.SatisfyAll(
		testenv.HavePath("spec.field", "constant"), testenv.HavePath("metadata.labels.seen", "yes"),
		testenv.HavePath("status.event", map[string]any{"name": "one"}), testenv.HavePath("metadata.annotations", nil),
	))
	b.expectRest() // it does not trigger itself endlessly
	b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(2), b.requests.String)
	b.patch(obj, `{"spec":{"field":"other"}}`)
	b.Eventually(cluster.Current(obj)).Should(testenv.HavePath("spec.field", "constant"))
	b.expectRest()
	b.remove(obj)
	b.expectGone(obj)
	b.expectRest()
	b.Expect(b.calls.All()[len(b.calls.All())-1]).To(gomega.Equal("one DELETED"))
}

func TestErrorsAndPanicsOfEventHandlersAreLoggedAndIgnored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnEvent(examples, b.watching(func(context.Context, *kopf.WatchEvent) error { return errors.New("first") }), kopf.ID("fails"))
	b.OnEvent(examples, b.watching(func(context.Context, *kopf.WatchEvent) error { panic("second") }), kopf.ID("panics"))
	b.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
		e.SetResult(make(chan int))
		return nil
	}, kopf.ID("returns_no_json"))
	b.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
		e.Patch().Set("other", "metadata", "name")
		return nil
	}, kopf.ID("patches_the_name"))
	b.OnEvent(examples, b.watching(ignore), kopf.ID("succeeds"))
	b.OnCreate(examples, b.noted("create", succeed), kopf.ID("create"))
	b.start()
	obj := b.create("one", nil)
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.All()[:4]).To(gomega.Equal([]string{"one ADDED", "one ADDED", "one ADDED", "create 0"}))
	b.Expect(b.logs.With(`"error"="first"`, "this is ignored", `"handler"="fails"`)).NotTo(gomega.BeEmpty())
	b.Expect(b.logs.With(`"error"="panic: second"`, "events_test.go", `"handler"="panics"`)).NotTo(gomega.BeEmpty())
	b.Expect(b.logs.With("chan int", `"handler"="returns_no_json"`)).NotTo(gomega.BeEmpty())
	b.Expect(b.logs.With("metadata.name", `"handler"="patches_the_name"`)).NotTo(gomega.BeEmpty())
}

func TestEventsDoNotWaitForRetries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", failing(1, meanwhile)), kopf.ID("create"))
	b.OnEvent(examples, b.watching(ignore), kopf.ID("event"))
	b.start()
	obj := b.create("one", nil)
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"create", gomega.ContainSubstring("delayed")))
	b.patch(obj, `{"metadata":{"labels":{"other":"x"}}}`)
	b.Eventually(func() int { return len(b.calls.Of("one")) }).Should(gomega.BeNumerically(">=", 3))
	b.expectHandled(obj)
	b.Expect(b.calls.Of("create")).To(gomega.Equal(attempts("create", 2)))
}

// While there are no workers, only the last state counts. On overflow, the oldest intermediate
// events are dropped, but never an addition or a deletion.
func TestBacklogDropsOnlyIntermediateEvents(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	b.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
		field, _ := e.Spec().String("field")
		b.calls.Note("%s %s", e.Type(), field)
		if e.Type() == "ADDED" {
			g.pass()
		}
		return nil
	}, kopf.ID("event"))
	b.start(func(o *kopf.Options) { o.Settings.Queueing.EventBacklog = 3 })
	obj := b.create("one", map[string]any{"field": "0"})
	<-g.entered
	for i := range 9 {
		b.setField(obj, fmt.Sprint(i+1))
	}
	b.remove(obj)
	b.create("marker", nil)
	// The busy object does not delay the marker.
	b.Eventually(func() []string { return b.calls.All() }).Should(gomega.ContainElement("ADDED "))
	close(g.opened)
	b.Eventually(b.calls.All).Should(gomega.ContainElement("DELETED 9"))
	var own []string
	for _, note := range b.calls.All() {
		if note != "ADDED " {
			own = append(own, note)
		}
	}
	b.Expect(own).To(gomega.Equal([]string{"ADDED 0", "MODIFIED 8", "MODIFIED 9", "DELETED 9"}))
}

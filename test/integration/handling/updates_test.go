package handling

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// transition returns the handler's diff of spec.field: "1->2".
func transition(c *kopf.Change) string {
	for _, item := range c.Diff() {
		if item.Path.String() == "spec.field" {
			return fmt.Sprintf("%v->%v", item.Old, item.New)
		}
	}
	return "no change"
}

// gate blocks the first call of a handler until the test opens it.
type gate struct{ entered, opened chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}, 100), make(chan struct{})} }

func (g *gate) pass() {
	g.entered <- struct{}{}
	<-g.opened
}

// seeing records the change that the handler sees: "id old->new".
func (b *bench) seeing(id string, then func(context.Context, *kopf.Change) error) func(context.Context, *kopf.Change) error {
	return func(ctx context.Context, c *kopf.Change) error {
		b.calls.Note("%s %s", id, transition(c))
		return then(ctx, c)
	}
}

func (b *bench) setField(obj *unstructured.Unstructured, value string) {
	b.t.Helper()
	b.patch(obj, fmt.Sprintf(`{"spec":{"field":%q}}`, value))
}

// withFieldOne returns an object that was handled while its spec.field was 1.
func (b *bench) withFieldOne() *unstructured.Unstructured {
	b.t.Helper()
	obj := b.create("one", map[string]any{"field": "1"})
	b.expectHandled(obj)
	return obj
}

func TestUpdatesDuringASlowHandlerAreHandledNext(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		meanwhile []string
		calls     []string
	}{
		"one update":            {[]string{"3"}, []string{"a 1->2", "b 1->2", "a 2->3", "b 2->3"}},
		"two quick updates":     {[]string{"3", "4"}, []string{"a 1->2", "b 1->2", "a 2->4", "b 2->4"}},
		"a reverted change":     {[]string{"1"}, []string{"a 1->2", "b 1->2", "a 2->1", "b 2->1"}},
		"a change and its undo": {[]string{"3", "2"}, []string{"a 1->2", "b 1->2"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, g := newBench(t), newGate()
			b.OnUpdate(examples, b.seeing("a", func(context.Context, *kopf.Change) error { g.pass(); return nil }), kopf.ID("a"))
			b.OnUpdate(examples, b.seeing("b", succeed), kopf.ID("b"))
			b.start()
			obj := b.withFieldOne()
			b.setField(obj, "2")
			<-g.entered
			for _, value := range test.meanwhile {
				b.setField(obj, value)
			}
			close(g.opened)
			b.Eventually(b.calls.All).Should(gomega.Equal(test.calls), b.logs.String)
			b.expectHandled(obj)
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.Equal(test.calls))
		})
	}
}

// meanwhile is a delay long enough for a test to make changes, even on a slow machine.
const meanwhile = 2 * time.Second

func TestRetriesSeeUpdates(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		meanwhile string
		calls     []string
	}{
		"each handler continues where it has ended":            {"3", []string{"a 1->2", "b 1->2", "a 1->3", "b 2->3"}},
		"a reverted change is seen by those that have seen it": {"1", []string{"a 1->2", "b 1->2", "a no change", "b 2->1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnUpdate(examples, b.seeing("a", func(_ context.Context, c *kopf.Change) error {
				if transition(c) == "1->2" {
					return kopf.Temporary(errNotYet, meanwhile)
				}
				return nil
			}), kopf.ID("a"))
			b.OnUpdate(examples, b.seeing("b", succeed), kopf.ID("b"))
			b.start()
			obj := b.withFieldOne()
			b.setField(obj, "2")
			b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"a", gomega.ContainSubstring("delayed")))
			b.setField(obj, test.meanwhile)
			b.expectHandled(obj)
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.Equal(test.calls))
		})
	}
}

func TestFieldHandlerSeesARevertedChange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnField(examples, "spec.field", func(_ context.Context, c *kopf.Change) error {
		b.calls.Note("%s->%s", c.Old(), c.New())
		if c.New().String() == "2" {
			return kopf.Temporary(errNotYet, meanwhile)
		}
		return nil
	}, kopf.ID("field"))
	b.start()
	obj := b.withFieldOne()
	b.setField(obj, "2")
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"field.spec.field", gomega.ContainSubstring("delayed")))
	b.setField(obj, "1")
	b.expectHandled(obj)
	b.expectRest()
	// The failed attempt may have had effects.
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"(absent)->1", "1->2", "1->1"}))
}

func TestUpdatesDuringACreationAreHandledOnce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		handler func(g *gate) func(context.Context, *kopf.Change) error
		updates []string
	}{
		"while its handler runs: as the next change": {func(g *gate) func(context.Context, *kopf.Change) error {
			return func(context.Context, *kopf.Change) error { g.pass(); return nil }
		}, []string{"update 1->2"}},
		"while its handler is retried: by the retry": {func(g *gate) func(context.Context, *kopf.Change) error {
			return func(_ context.Context, c *kopf.Change) error {
				if field, _ := c.Spec().String("field"); field == "1" {
					g.entered <- struct{}{}
					return kopf.Temporary(errNotYet, 500*time.Millisecond)
				}
				return nil
			}
		}, []string{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, g := newBench(t), newGate()
			b.OnCreate(examples, test.handler(g), kopf.ID("create"))
			b.OnUpdate(examples, b.seeing("update", succeed), kopf.ID("update"))
			b.start()
			obj := b.create("one", map[string]any{"field": "1"})
			<-g.entered
			b.setField(obj, "2")
			close(g.opened)
			b.expectHandled(obj)
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.ConsistOf(test.updates))
		})
	}
}

func TestChangeBetweenHandlersOfAPassIsHandledNext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnUpdate(examples, b.seeing("a", func(ctx context.Context, c *kopf.Change) error {
		if transition(c) != "1->2" {
			return nil
		}
		obj := testenv.NewObject("KopfExample", c.Namespace(), c.Name(), nil)
		return c.Client().Patch(ctx, obj, mergePatch(`{"spec":{"field":"3"}}`))
	}), kopf.ID("a"))
	b.OnUpdate(examples, b.seeing("b", succeed), kopf.ID("b"))
	b.start()
	obj := b.withFieldOne()
	b.setField(obj, "2")
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"a 1->2", "b 1->2", "a 2->3", "b 2->3"}))
}

// The progress is persisted between two long handlers, which reveals the change.
func TestHandlersAfterACheckpointSeeTheLatestState(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	b.OnUpdate(examples, b.seeing("a", func(context.Context, *kopf.Change) error { g.pass(); return nil }), kopf.ID("a"))
	b.OnUpdate(examples, b.seeing("b", func(_ context.Context, c *kopf.Change) error {
		field, _ := c.Spec().String("field")
		b.calls.Note("b with %s", field)
		return nil
	}), kopf.ID("b"))
	b.start(func(o *kopf.Options) { o.Settings.Execution.CheckpointInterval = time.Nanosecond })
	obj := b.withFieldOne()
	b.setField(obj, "2")
	<-g.entered
	b.setField(obj, "3")
	close(g.opened)
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"a 1->2", "b 1->3", "b with 3", "a 2->3"}))
}

func TestChangeByTheHandlersPatchIsHandledNext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		c.Patch().Set("2", "spec", "field")
		return nil
	}, kopf.ID("create"))
	b.OnUpdate(examples, b.seeing("update", succeed), kopf.ID("update"))
	b.start()
	obj := b.create("one", map[string]any{"field": "1"})
	b.Eventually(cluster.Current(obj)).Should(testenv.HavePath("spec.field", "2"))
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"update 1->2"}))
}

func TestChangeWithoutOperatorIsHandledAfterTheRestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnUpdate(examples, b.seeing("update", succeed), kopf.ID("update"))
	operator := b.start()
	obj := b.withFieldOne()
	operator.Stop()
	for _, value := range []string{"2", "3", "4"} {
		b.setField(obj, value)
	}
	b.start()
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"update 1->4"}))
}

func TestRemovedHandlerDoesNotBlockTheCycle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("waits", fail(kopf.Temporary(errNotYet, long))), kopf.ID("waits"), kopf.Labels(map[string]kopf.Matcher{"wanted": kopf.Present()}))
	b.OnCreate(examples, b.noted("other", succeed), kopf.ID("other"))
	b.start()
	obj := testenv.NewObject("KopfExample", b.namespace, "one", nil)
	obj.SetLabels(map[string]string{"wanted": "yes"})
	b.submit(obj)
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"waits", gomega.ContainSubstring("delayed")))
	b.patch(obj, `{"metadata":{"labels":{"wanted":null}}}`)
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"waits 0", "other 0"}))
}

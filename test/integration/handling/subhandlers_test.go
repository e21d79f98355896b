package handling

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// The example from the documentation of idempotence, with shorter delays.
func TestSubhandlersAreRetriedUntilTheySucceed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		execute func(ctx context.Context, c *kopf.Change) error
		// left is how often the handler returns, given how often it is called.
		left func(entered int) int
	}{
		"in place":          {func(ctx context.Context, c *kopf.Change) error { return c.Execute(ctx) }, func(int) int { return 1 }},
		"after the handler": {func(context.Context, *kopf.Change) error { return nil }, func(entered int) int { return entered }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(examples, b.noted("create", func(ctx context.Context, c *kopf.Change) error {
				c.Subhandler("a", b.noted("a", failing(2, 100*time.Millisecond)))
				c.Subhandler("b", b.noted("b", failing(6, 100*time.Millisecond)))
				if err := test.execute(ctx, c); err != nil {
					return err
				}
				b.calls.Note("left %d", c.Retry())
				return nil
			}), kopf.ID("create"))
			b.start()
			b.expectHandled(b.create("one", nil))
			// One write for both while they are due at the same time, as on a machine that is
			// fast enough.
			entered := b.calls.Of("create")
			b.Expect(entered).To(gomega.Equal(attempts("create", len(entered))))
			b.Expect(len(entered)).To(gomega.And(gomega.BeNumerically(">=", 7), gomega.BeNumerically("<=", 7+3)))
			b.Expect(b.calls.Of("a")).To(gomega.Equal(attempts("a", 3)))
			b.Expect(b.calls.Of("b")).To(gomega.Equal(attempts("b", 7)))
			b.Expect(b.calls.Of("left")).To(gomega.HaveLen(test.left(len(entered))))
		})
	}
}

func TestSubhandlersOfSubhandlersHaveTheirOwnProgressAndResults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	inner := func(_ context.Context, c *kopf.Change) error {
		if c.Retry() < 1 {
			return kopf.Temporary(errNotYet, meanwhile)
		}
		c.SetResult(c.Retry())
		return nil
	}
	b.OnCreate(examples, b.noted("create", func(_ context.Context, c *kopf.Change) error {
		c.Subhandler("a", b.noted("a", func(_ context.Context, c *kopf.Change) error {
			c.Subhandler("x", b.noted("x", inner))
			c.Subhandler("y", b.noted("y", succeed))
			return nil
		}))
		return nil
	}), kopf.ID("create"))
	b.start()
	obj := b.create("one", nil)
	b.Eventually(cluster.Current(obj)).Should(gomega.SatisfyAll(
		testenv.HaveAnnotation(prefix+"create", gomega.ContainSubstring(`"subrefs":["create/a","create/a/x","create/a/y"]`)),
		testenv.HaveAnnotation(prefix+"create.a", gomega.ContainSubstring(`"retries":1`)),
		testenv.HaveAnnotation(prefix+"create.a.x", gomega.ContainSubstring(`"delayed"`)),
		testenv.HaveAnnotation(prefix+"create.a.y", gomega.ContainSubstring(`"success":true`)),
	))
	b.Expect(b.expectHandled(obj)).To(testenv.HavePath("status", map[string]any{"create/a/x": int64(1)}))
	b.Expect(b.calls.Of("x")).To(gomega.Equal(attempts("x", 2)))
	b.Expect(b.calls.Of("y")).To(gomega.Equal(attempts("y", 1)))
}

func TestFailedSubhandlerDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", func(_ context.Context, c *kopf.Change) error {
		c.Subhandler("bad", b.noted("bad", func(context.Context, *kopf.Change) error { return errors.New("broken") }), kopf.Retries(2), kopf.Backoff(0))
		c.Subhandler("good", b.noted("good", succeed))
		c.Subhandler("other", b.noted("other", succeed), kopf.Labels(map[string]kopf.Matcher{"absent": kopf.Present()}))
		return nil
	}), kopf.ID("create"))
	b.start()
	obj := b.create("one", nil)
	b.expectHandled(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create 0", "bad 0", "good 0", "create 1", "bad 1"}))
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.ContainSubstring("Handler create/bad failed permanently")))
}

func TestSubhandlersWithTheSameIDFailTheirParent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", func(_ context.Context, c *kopf.Change) error {
		c.Subhandler("a", b.noted("a", succeed))
		c.Subhandler("a", b.noted("a", succeed))
		return nil
	}), kopf.ID("create"))
	b.start()
	obj := b.create("one", nil)
	b.expectHandled(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create 0"}))
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.ContainSubstring(`two sub-handlers have the id "create/a"`)))
}

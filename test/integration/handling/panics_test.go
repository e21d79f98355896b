package handling

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func TestPanicIsARegularErrorWithAStack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", func(_ context.Context, c *kopf.Change) error {
		if c.Retry() == 0 {
			items, _ := c.Spec().List("items")
			b.calls.Note("%s", items[0])
		}
		return nil
	}), kopf.ID("create"), kopf.Backoff(50*time.Millisecond))
	b.OnCreate(examples, b.noted("parent", func(_ context.Context, c *kopf.Change) error {
		c.Subhandler("child", b.noted("child", func(_ context.Context, c *kopf.Change) error {
			if c.Retry() == 0 {
				panic("oops")
			}
			return nil
		}), kopf.Backoff(50*time.Millisecond))
		return nil
	}), kopf.ID("parent"))
	b.OnCreate(examples, b.noted("last", func(context.Context, *kopf.Change) error { panic(kopf.Permanent(errBroken)) }), kopf.ID("last"))
	b.start()
	obj := b.create("one", nil)
	b.expectHandled(obj)
	b.Expect(b.calls.Of("create")).To(gomega.Equal(attempts("create", 2)))
	b.Expect(b.calls.Of("child")).To(gomega.Equal(attempts("child", 2)))
	b.Expect(b.calls.Of("last")).To(gomega.Equal(attempts("last", 1)))
	b.Eventually(b.logged("index out of range", "will be retried", "panics_test.go")).Should(gomega.HaveLen(1))
	b.Eventually(b.logged("oops", "will be retried", "panics_test.go", `"handler"="parent/child"`)).Should(gomega.HaveLen(1))
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.HavePrefix(
		"Warning HandlerRetrying: Handler create failed and will be retried: panic: runtime error: index out of range")))
}

func TestPanicInAFilterDelaysOnlyItsObject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", succeed), kopf.ID("create"), kopf.When(func(a kopf.Arguments) bool {
		if a.Name() == "bad" {
			panic("oops")
		}
		return true
	}))
	b.start()
	bad := b.create("bad", nil)
	b.expectHandled(b.create("good", nil))
	b.Eventually(func() []string { return b.logs.With("oops", "panics_test.go", bad.GetName()) }).ShouldNot(gomega.BeEmpty())
	b.Expect(b.calls.All()).To(gomega.Equal(attempts("create", 1)))
}

// The panic does not repeat the handlers that have succeeded before.
func TestPanicInAFilterOfASubhandlerFailsTheHandler(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("before", succeed), kopf.ID("before"))
	b.OnCreate(examples, b.noted("parent", func(_ context.Context, c *kopf.Change) error {
		c.Subhandler("child", b.noted("child", succeed), kopf.When(func(kopf.Arguments) bool {
			if c.Retry() == 0 {
				panic("oops")
			}
			return true
		}))
		return nil
	}), kopf.ID("parent"), kopf.Backoff(0))
	b.start()
	b.expectHandled(b.create("one", nil))
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"before 0", "parent 0", "parent 1", "child 0"}))
}

func TestPanicInAFilterOfEventsDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnEvent(examples, b.watching(ignore), kopf.ID("panics"), kopf.When(func(kopf.Arguments) bool { panic("oops") }))
	b.OnEvent(examples, b.watching(ignore), kopf.ID("follows"))
	b.start()
	obj := b.create("one", nil)
	b.remove(obj)
	b.Eventually(b.calls.All).Should(gomega.Equal([]string{"one ADDED", "one DELETED"}))
	b.Expect(b.logs.With("panic: oops", "panics_test.go", `"handler"="panics"`)).To(gomega.HaveLen(2))
}

package background

import (
	"context"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// deleting records its calls with the number of the retry, and fails the given number of times.
func (b *bench) deleting(failures int, last error) func(context.Context, *kopf.Change) error {
	return func(_ context.Context, c *kopf.Change) error {
		b.calls.Note("delete %d", c.Retry())
		if c.Retry() < failures {
			return kopf.Temporary(errBroken, brief)
		}
		return last
	}
}

var deletions = map[string]struct {
	failures int
	last     error
	record   string
	calls    []string
}{
	"if they succeed":         {0, nil, `"success":true`, []string{"delete 0"}},
	"if they are retried":     {2, nil, `"success":true`, []string{"delete 0", "delete 1", "delete 2"}},
	"if they fail for good":   {0, kopf.Permanent(errBroken), `"failure":true`, []string{"delete 0"}},
	"if they fail in the end": {1, kopf.Permanent(errBroken), `"failure":true`, []string{"delete 0", "delete 1"}},
}

func TestDeletionHandlersRunOnceWhileADaemonStops(t *testing.T) {
	t.Parallel()
	for name, test := range deletions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, g := newBench(t), newGate()
			defer g.open()
			b.Daemon(examples, b.counted("watch", func(_ context.Context, task *kopf.Task) error { <-task.Stopped(); g.pass(); return nil }), kopf.ID("watch"))
			b.OnDelete(examples, b.deleting(test.failures, test.last), kopf.ID("delete"))
			b.start()
			obj := b.create("one", nil)
			b.expectRunning("watch one", 1, 1)
			b.expectRest()
			b.requests.Reset()
			b.remove(obj)
			b.arrived(g)
			b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"delete", gomega.ContainSubstring(test.record)), b.logs.String)
			b.patch(obj, `{"metadata":{"labels":{"changed":"meanwhile"}}}`)
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.Equal(test.calls))
			g.open()
			b.expectGone(obj)
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.Equal(test.calls))
			b.expectWrites(len(test.calls) + 1)
		})
	}
}

// If the daemon stops before the handler, the object waits for the handler.
func TestDeletionHandlerHoldsTheObjectAfterTheDaemon(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	defer g.open()
	b.Daemon(examples, b.counted("watch", b.untilStopped), kopf.ID("watch"))
	b.OnDelete(examples, func(context.Context, *kopf.Change) error { b.calls.Note("delete"); g.pass(); return nil }, kopf.ID("delete"))
	b.start()
	obj := b.create("one", nil)
	b.expectRunning("watch one", 1, 1)
	b.expectRest()
	b.requests.Reset()
	b.remove(obj)
	b.arrived(g)
	b.expectRunning("watch one", 0, 1)
	b.Expect(b.current(obj)).To(testenv.HaveFinalizer(finalizer))
	g.open()
	b.expectGone(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.ConsistOf("delete", "one deleted|signaled"))
	b.expectWrites(1)
}

// The operator exits while a daemon does not stop: either it releases the object when it
// abandons the daemon, or the next operator does. Nothing is done twice.
func TestDeletionSurvivesARestart(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	defer g.open()
	b.Daemon(examples, b.counted("watch", func(_ context.Context, task *kopf.Task) error { <-task.Stopped(); g.pass(); return nil }), kopf.ID("watch"))
	b.OnDelete(examples, b.deleting(0, nil), kopf.ID("delete"))
	operator := b.start(impatient)
	obj := b.create("one", nil)
	b.expectRunning("watch one", 1, 1)
	b.remove(obj)
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"delete", gomega.ContainSubstring(`"success":true`)))
	operator.Stop()
	b.start()
	b.expectGone(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"delete 0"}))
	b.expectRunning("watch one", 1, 1) // the daemon of the first operator, which does not stop
}

package background

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// isBad restricts a handler to the object that causes trouble.
func isBad(a kopf.Arguments) bool { return a.Name() == "bad" }

// troubled starts an operator with a daemon that causes trouble for one object, and a
// well-behaved daemon and timer for all objects.
func (b *bench) troubled(fn func(context.Context, *kopf.Task) error, options ...kopf.BackgroundOption) (bad, good *unstructured.Unstructured) {
	b.t.Helper()
	b.Daemon(examples, b.counted("trouble", fn), append(options, kopf.ID("trouble"), kopf.When(isBad))...)
	b.Daemon(examples, b.counted("daemon", b.untilStopped), kopf.ID("daemon"))
	b.Timer(examples, b.counting("timer"), kopf.ID("timer"), kopf.Interval(brief))
	b.start(impatient)
	bad, good = b.create("bad", nil), b.create("good", nil)
	b.expectRunning("trouble bad", 1, 1)
	b.expectRunning("daemon good", 1, 1)
	return bad, good
}

// expectUndisturbed checks that the object's daemon keeps running, and that its timer is
// called and its results are written.
func (b *bench) expectUndisturbed(obj *unstructured.Unstructured) {
	b.t.Helper()
	now := b.runs.count("timer " + obj.GetName())()
	b.Eventually(cluster.Current(obj)).Should(testenv.HavePath("status.timer", gomega.BeNumerically(">", now+5)), b.logs.String)
	b.expectRunning("daemon "+obj.GetName(), 1, 1)
	b.Expect(b.runs.overlapping()).NotTo(gomega.ContainElement(gomega.HavePrefix("timer ")))
}

func (b *bench) ignoringItsStop(g *gate) func(context.Context, *kopf.Task) error {
	return func(ctx context.Context, task *kopf.Task) error {
		<-ctx.Done()
		b.calls.Note("canceled: %s", task.StopReason())
		g.pass()
		b.calls.Note("ended: %s", task.StopReason())
		task.SetResult("late")
		return nil
	}
}

func TestDaemonThatIgnoresItsStopIsAbandoned(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	defer g.open()
	bad, good := b.troubled(b.ignoringItsStop(g), kopf.CancellationBackoff(brief), kopf.CancellationTimeout(brief))
	b.remove(bad)
	b.arrived(g)
	b.expectGone(bad)
	b.Eventually(cluster.Events(bad)).Should(gomega.ContainElement(gomega.HavePrefix("Warning Abandoned: The daemon trouble has not returned in time")))
	b.Expect(b.logs.With("The daemon trouble has not returned in time", `"name"="bad"`)).To(gomega.HaveLen(1))
	b.expectUndisturbed(good)

	// A recreated object has its own daemon, next to the abandoned one.
	b.create("bad", nil)
	b.expectRunning("trouble bad", 2, 2)
	g.open()
	b.expectRunning("trouble bad", 1, 2)
	b.Expect(b.calls.All()).To(gomega.ContainElements(
		"canceled: deleted|signaled|canceled", "ended: deleted|signaled|canceled|abandoned"))
	b.expectUndisturbed(good)
}

// On a mismatch, the object stays, and no second daemon is started next to the abandoned
// one.
func TestAbandonedDaemonIsNotStartedTwice(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	defer g.open()
	b.Daemon(examples, b.counted("watch", b.slowToStop(g)), kopf.ID("watch"),
		kopf.Labels(map[string]kopf.Matcher{"watched": kopf.Equal("yes")}), kopf.CancellationTimeout(brief))
	b.start(impatient)
	obj := b.labelled("one", "watched", "yes")
	b.expectRunning("watch one", 1, 1)
	b.patch(obj, `{"metadata":{"labels":{"watched":"no"}}}`)
	b.arrived(g)
	b.expectReleased(obj)
	b.patch(obj, `{"metadata":{"labels":{"watched":"yes"}}}`)
	b.expectRest()
	b.expectRunning("watch one", 1, 1)
	g.open()
	b.expectRunning("watch one", 1, 2) // as soon as the abandoned one has returned
	b.Expect(b.runs.overlapping()).To(gomega.BeEmpty())
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveFinalizer(finalizer))
}

func TestPanickedDaemonIsStartedAgain(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	defer g.open()
	bad, good := b.troubled(func(_ context.Context, task *kopf.Task) error {
		if g.pass(); task.Retry() < 2 {
			panic("oops")
		}
		<-task.Stopped()
		panic("at the end")
	}, kopf.Backoff(brief))
	g.open() // the first start was seen
	b.expectRunning("trouble bad", 1, 3)
	b.Eventually(cluster.Events(bad)).Should(gomega.ContainElement("Warning HandlerRetrying: Handler trouble failed and will be retried: panic: oops"))
	b.Expect(b.logs.With("panic: oops", "will be retried", "hung_test.go", `"handler"="trouble"`)).To(gomega.HaveLen(2))
	b.expectUndisturbed(bad)
	b.expectUndisturbed(good)
	b.remove(bad)
	b.expectGone(bad)
	b.Eventually(cluster.Events(bad)).Should(gomega.ContainElement("Warning HandlerFailed: Handler trouble failed permanently: panic: at the end"))
	b.expectRunning("trouble bad", 0, 3)
	b.expectUndisturbed(good)
}

// Without a timeout, the daemon is not abandoned, and a warning names it.
func TestEndlessDaemonHoldsItsObject(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	defer g.open()
	bad, good := b.troubled(func(context.Context, *kopf.Task) error { g.pass(); return nil }, kopf.CancellationPolling(brief))
	b.remove(bad)
	said := func() []string {
		return b.logs.With("The daemon trouble was asked to stop and is still running", `"name"="bad"`)
	}
	b.Eventually(said).ShouldNot(gomega.BeEmpty())
	b.Eventually(cluster.Events(bad)).Should(gomega.ContainElement(gomega.HavePrefix("Warning Stopping: The daemon trouble was asked to stop")))
	b.requests.Reset()
	b.Eventually(func() int { return len(said()) }).Should(gomega.BeNumerically(">", 5))
	b.Expect(b.current(bad)).To(testenv.HaveFinalizer(finalizer))
	b.Expect(b.writesTo(bad)).To(gomega.BeZero(), b.requests.String)
	b.expectUndisturbed(good)
	b.expectRunning("daemon bad", 0, 1)
	g.open()
	b.expectGone(bad)
	b.expectRunning("trouble bad", 0, 1)
	count := len(said())
	b.Consistently(said, quiet).Should(gomega.HaveLen(count))
}

// The setting is the default for daemons without their own polling interval.
func TestHungDaemonIsReportedAtTheConfiguredInterval(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	defer g.open()
	b.Daemon(examples, b.counted("watch", func(context.Context, *kopf.Task) error { g.pass(); return nil }), kopf.ID("watch"))
	b.start(impatient, func(o *kopf.Options) { o.Settings.Background.CancellationPolling = brief })
	obj := b.create("one", nil)
	b.arrived(g)
	b.remove(obj)
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.HavePrefix("Warning Stopping: ")))
	g.open()
	b.expectGone(obj)
}

// Code that ignores its stop cannot be stopped, but the operator ends.
func TestEndlessDaemonDoesNotBlockShutdown(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	defer g.open()
	b.Daemon(examples, b.counted("watch", func(ctx context.Context, task *kopf.Task) error {
		<-task.Stopped()
		<-ctx.Done() // at the end of the grace period, because it has no timeout
		b.calls.Note("%s", task.StopReason())
		g.pass()
		return nil
	}), kopf.ID("watch"))
	operator := b.start(impatient)
	obj := b.create("one", nil)
	b.expectRunning("watch one", 1, 1)
	operator.Stop()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"exiting|signaled|canceled"}))
	b.Expect(b.logs.With("The daemon watch has not returned in time")).To(gomega.HaveLen(1))
	b.Expect(b.current(obj)).To(testenv.HaveFinalizer(finalizer))
	g.open()
	b.expectRunning("watch one", 0, 1)
}

package background

import (
	"context"
	"errors"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

var errBroken = errors.New("broken")

func TestDaemonRunsWhileItsObjectExists(t *testing.T) {
	t.Parallel()
	tests := map[string]func(b *bench) *unstructured.Unstructured{
		"created while the operator runs": func(b *bench) *unstructured.Unstructured {
			b.start()
			return b.create("one", nil)
		},
		"created before the operator starts": func(b *bench) *unstructured.Unstructured {
			defer b.start()
			return b.create("one", nil)
		},
	}
	for name, begin := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			accompanied(newBench(t), begin)
		})
	}
}

func accompanied(b *bench, begin func(b *bench) *unstructured.Unstructured) {
	g := newGate()
	defer g.open()
	b.Daemon(examples, b.counted("watch", b.slowToStop(g)), kopf.ID("watch"))
	obj := begin(b)
	b.expectRunning("watch one", 1, 1)
	b.Expect(b.current(obj)).To(testenv.HaveFinalizer(finalizer))
	b.patch(obj, `{"spec":{"field":"changed"}}`)
	b.remove(obj)
	b.arrived(g)
	b.expectRest()
	b.Expect(b.current(obj)).To(testenv.HaveFinalizer(finalizer), "it is held until the daemon has returned")
	g.open()
	b.expectGone(obj)
	b.expectRunning("watch one", 0, 1)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"one deleted|signaled"}))
	b.expectWrites(2)
}

// The finalizer must exist first, so that the effects of the daemon can be undone.
func TestFinalizerIsAddedBeforeTheDaemonStarts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Daemon(examples, func(ctx context.Context, task *kopf.Task) error {
		obj, err := cluster.Current(testenv.NewObject("KopfExample", task.Namespace(), task.Name(), nil))()
		if err == nil {
			b.calls.Note("%v", obj.GetFinalizers())
		}
		return err
	}, kopf.ID("watch"))
	b.start()
	b.create("one", nil)
	b.Eventually(b.calls.All).Should(gomega.Equal([]string{"[" + finalizer + "]"}))
}

func TestDaemonStopsOnMismatchAndRestartsOnMatch(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	defer g.open()
	b.Daemon(examples, b.counted("watch", b.slowToStop(g)), kopf.ID("watch"), kopf.Labels(map[string]kopf.Matcher{"watched": kopf.Equal("yes")}))
	b.Daemon(examples, b.counted("other", b.untilStopped), kopf.ID("other"))
	b.start()
	obj := b.labelled("one", "watched", "yes")
	b.expectRunning("watch one", 1, 1)
	b.patch(obj, `{"metadata":{"labels":{"watched":"no"}}}`)
	b.arrived(g)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"one mismatch|signaled"}))
	b.patch(obj, `{"metadata":{"labels":{"watched":"yes"}}}`)
	b.expectRest()
	b.expectRunning("watch one", 1, 1) // the next one waits for this one
	g.open()
	b.expectRunning("watch one", 1, 2) // and for nothing else
	b.expectRunning("other one", 1, 1)
	b.Expect(b.runs.overlapping()).To(gomega.BeEmpty())
	b.expectWrites(1)
	b.remove(obj)
	b.expectGone(obj)
	b.expectWrites(2)
}

// With flapping filters, at most one daemon runs at any time, and one runs in the end.
func TestFlappingFiltersRunAtMostOneDaemon(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Daemon(examples, b.counted("watch", b.untilStopped), kopf.ID("watch"), kopf.Labels(map[string]kopf.Matcher{"watched": kopf.Equal("yes")}))
	b.start()
	obj := b.labelled("one", "watched", "yes")
	for range 10 {
		b.patch(obj, `{"metadata":{"labels":{"watched":"no"}}}`)
		b.patch(obj, `{"metadata":{"labels":{"watched":"yes"}}}`)
	}
	b.expectRest()
	b.Eventually(b.runs.running("watch one")).Should(gomega.Equal(1))
	b.Expect(b.runs.overlapping()).To(gomega.BeEmpty())
	b.Expect(b.current(obj)).To(testenv.HaveFinalizer(finalizer))
	b.patch(obj, `{"metadata":{"labels":{"watched":"no"}}}`)
	b.expectReleased(obj)
	b.Expect(b.runs.running("watch one")()).To(gomega.BeZero())
	b.remove(obj)
	b.expectGoneAtOnce(obj)
}

func TestFinishedDaemonReleasesItsObject(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ err error }{
		"by returning":           {nil},
		"with a permanent error": {kopf.Permanent(errBroken)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, g := newBench(t), newGate()
			defer g.open()
			b.Daemon(examples, b.counted("watch", func(context.Context, *kopf.Task) error { g.pass(); return test.err }), kopf.ID("watch"))
			b.start()
			obj := b.create("one", nil)
			b.arrived(g)
			b.Expect(b.current(obj)).To(testenv.HaveFinalizer(finalizer))
			g.open()
			b.expectReleased(obj)
			b.patch(obj, `{"spec":{"field":"changed"}}`)
			b.expectRest()
			b.expectRunning("watch one", 0, 1) // and is not started again
			b.expectWrites(2)
			b.remove(obj)
			b.expectGoneAtOnce(obj)
		})
	}
}

func TestObjectIsHeldWhileADaemonRuns(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	defer g.open()
	b.Daemon(examples, b.counted("first", func(context.Context, *kopf.Task) error { return nil }), kopf.ID("first"))
	b.Daemon(examples, b.counted("second", func(context.Context, *kopf.Task) error { g.pass(); return nil }), kopf.ID("second"))
	b.start()
	obj := b.create("one", nil)
	b.arrived(g)
	b.expectRunning("first one", 0, 1)
	b.expectRest()
	b.Expect(b.current(obj)).To(testenv.HaveFinalizer(finalizer))
	g.open()
	b.expectReleased(obj)
	b.expectWrites(2)
}

// A daemon that waits for its next attempt does not need to be stopped.
func TestDaemonBetweenAttemptsDoesNotHoldItsObject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Daemon(examples, b.counted("watch", func(context.Context, *kopf.Task) error { return kopf.Temporary(errBroken, long) }), kopf.ID("watch"))
	b.Daemon(examples, b.counted("later", b.untilStopped), kopf.ID("later"), kopf.InitialDelay(long))
	b.start()
	obj := b.create("one", nil)
	b.expectRunning("watch one", 0, 1)
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement("Warning HandlerRetrying: Handler watch will be retried: broken"))
	b.remove(obj)
	b.expectGone(obj)
	b.expectRest()
	b.expectRunning("watch one", 0, 1)
	b.expectRunning("later one", 0, 0)
	b.expectWrites(2)
}

// A daemon of Deleted runs on while another controller holds the deleted object, also with the next operator.
func TestDaemonOutlastsTheDeletion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Daemon(examples, b.counted("lasting", b.untilStopped), kopf.ID("lasting"), kopf.Deleted())
	first := b.start()
	obj := testenv.NewObject("KopfExample", b.namespace, "one", nil)
	obj.SetFinalizers([]string{"example.com/other"})
	b.submit(obj)
	free := b.create("free", nil)
	b.expectRunning("lasting one", 1, 1)
	b.expectRunning("lasting free", 1, 1)
	b.Expect(b.current(obj).GetFinalizers()).To(gomega.Equal([]string{"example.com/other"}))
	b.remove(free)
	b.expectGoneAtOnce(free)
	b.expectRunning("lasting free", 0, 1)
	b.remove(obj)
	b.expectRest()
	b.expectRunning("lasting one", 1, 1)
	first.Stop()
	b.start()
	b.expectRunning("lasting one", 1, 2)
	b.patch(obj, `{"metadata":{"finalizers":null}}`)
	b.expectGone(obj)
	b.expectRunning("lasting one", 0, 2)
	b.Expect(b.calls.All()).To(gomega.ConsistOf("free deleted|signaled", "one exiting|signaled", "one deleted|signaled"))
	b.Expect(b.writes()).To(gomega.Equal(0))
}

package background

import (
	"context"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestDaemonRunsAgainAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Daemon(examples, b.counted("watch", b.untilStopped), kopf.ID("watch"))
	b.OnCreate(examples, func(_ context.Context, c *kopf.Change) error { b.calls.Note("create"); return nil }, kopf.ID("create"))
	operator := b.start()
	obj := b.create("one", nil)
	b.expectRunning("watch one", 1, 1)
	b.expectRest()
	version := b.current(obj).GetResourceVersion()
	for restart := range 3 {
		operator.Stop()
		b.Expect(b.runs.running("watch one")()).To(gomega.BeZero(), "it has stopped with the operator")
		b.Expect(b.current(obj)).To(testenv.HaveFinalizer(finalizer))
		operator = b.start()
		b.expectRunning("watch one", 1, restart+2)
	}
	b.expectRest()
	b.Expect(b.current(obj).GetResourceVersion()).To(gomega.Equal(version), "nothing was written")
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create", "one exiting|signaled", "one exiting|signaled", "one exiting|signaled"}))
}

// The next operator calls a daemon that has returned again, and needs the finalizer for it.
func TestFinishedDaemonRunsAgainAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Daemon(examples, b.counted("watch", func(context.Context, *kopf.Task) error { return nil }), kopf.ID("watch"))
	operator := b.start()
	obj := b.create("one", nil)
	b.expectRunning("watch one", 0, 1)
	b.expectReleased(obj)
	b.expectRest()
	operator.Stop()
	b.requests.Reset()
	b.start()
	b.expectRunning("watch one", 0, 2)
	b.expectReleased(obj)
	b.expectWrites(2)
}

func TestObjectDeletedWithoutOperatorIsReleased(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Daemon(examples, b.counted("watch", b.untilStopped), kopf.ID("watch"))
	operator := b.start()
	obj := b.create("one", nil)
	b.expectRunning("watch one", 1, 1)
	operator.Stop()
	b.remove(obj)
	b.requests.Reset()
	b.start()
	b.expectGone(obj)
	b.expectRest()
	b.expectRunning("watch one", 0, 1)
	b.expectWrites(1)
}

// An object that no longer matches when the operator returns is released.
func TestObjectThatNoLongerMatchesIsReleasedAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Daemon(examples, b.counted("watch", b.untilStopped), kopf.ID("watch"), kopf.Labels(map[string]kopf.Matcher{"watched": kopf.Equal("yes")}))
	operator := b.start()
	obj := b.labelled("one", "watched", "yes")
	b.expectRunning("watch one", 1, 1)
	operator.Stop()
	b.patch(obj, `{"metadata":{"labels":{"watched":"no"}}}`)
	b.requests.Reset()
	b.start()
	b.expectReleased(obj)
	b.expectRest()
	b.expectRunning("watch one", 0, 1)
	b.expectWrites(1)
}

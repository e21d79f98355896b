package lifecycle

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// The end has an order: handlers and daemons, then the cleanup, then the place
// among the peers.
func TestTheOrderOfTheEnd(t *testing.T) {
	t.Parallel()
	g, n, namespace, r := gomega.NewWithT(t), &notes{}, cluster.Namespace(t), kopf.NewRegistry()
	meeting := testenv.NewObject("KopfPeering", namespace, "default", nil)
	g.Expect(cluster.Client().Create(t.Context(), meeting)).To(gomega.Succeed())
	entered := make(chan struct{})
	r.OnCreate(examples, func(ctx context.Context, _ *kopf.Change) error {
		close(entered)
		<-ctx.Done()
		n.add("handler")
		return ctx.Err()
	}, kopf.ID("create"))
	r.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
		<-t.Stopped()
		n.add("daemon")
		return nil
	}, kopf.ID("daemon"))
	entries := func() int {
		found, err := cluster.Current(meeting)()
		g.Expect(err).NotTo(gomega.HaveOccurred())
		status, _, _ := unstructured.NestedMap(found.Object, "status")
		return len(status)
	}
	cleanup := func(name string, errs ...error) {
		r.OnCleanup(func(_ context.Context, a *kopf.Activity) error {
			n.add(name)
			g.Expect(entries()).To(gomega.Equal(1), "the peers are let in too early")
			if a.Retry() < len(errs) {
				return errs[a.Retry()]
			}
			return nil
		}, kopf.ID(name), kopf.Backoff(0))
	}
	cleanup("first", errNo)
	cleanup("second", kopf.Permanent(errNo))
	cleanup("third")
	s := scoped(namespace)
	s.Execution.GracePeriod = 100 * time.Millisecond
	_, stop := run(t, kopf.Options{Registry: r, Config: cluster.Config(), Settings: s})
	create(t, namespace, "one")
	<-entered
	g.Expect(stop()).To(gomega.Succeed())
	g.Expect(n.all()).To(gomega.HaveExactElements(
		gomega.BeElementOf("daemon", "handler"), gomega.BeElementOf("daemon", "handler"), "first", "first", "second", "third"))
	g.Expect(entries()).To(gomega.Equal(0))
}

// Cleanup handlers that do not end are abandoned, at last.
func TestTheEndHasAnEnd(t *testing.T) {
	t.Parallel()
	g, n, namespace, r := gomega.NewWithT(t), &notes{}, cluster.Namespace(t), kopf.NewRegistry()
	r.OnCreate(examples, n.created, kopf.ID("create"))
	r.OnCleanup(func(ctx context.Context, _ *kopf.Activity) error {
		<-ctx.Done()
		n.add("cancelled")
		return ctx.Err()
	}, kopf.ID("endless"))
	s := scoped(namespace)
	s.Execution.ShutdownTimeout = 500 * time.Millisecond
	ready, stop := run(t, kopf.Options{Registry: r, Config: cluster.Config(), Settings: s})
	g.Eventually(ready).Should(gomega.BeClosed())
	_ = stop() // an error or none: the two limits are the same
	g.Expect(n.all()).To(gomega.Equal([]string{"cancelled"}))
}

// Nobody can stop a handler that does not want to be stopped.
func TestTheEndDoesNotDependOnAnybody(t *testing.T) {
	t.Parallel()
	g, n, namespace, r := gomega.NewWithT(t), &notes{}, cluster.Namespace(t), kopf.NewRegistry()
	r.OnCreate(examples, n.created, kopf.ID("create"))
	proceed := make(chan struct{})
	defer close(proceed)
	r.OnCleanup(func(context.Context, *kopf.Activity) error { <-proceed; return nil }, kopf.ID("deaf"))
	s := scoped(namespace)
	s.Execution.ShutdownTimeout = 100 * time.Millisecond
	ready, stop := run(t, kopf.Options{Registry: r, Config: cluster.Config(), Settings: s})
	g.Eventually(ready).Should(gomega.BeClosed())
	g.Expect(stop()).To(gomega.MatchError(gomega.ContainSubstring("has not stopped in time: what still runs is left behind")))
}

// An operator that cannot go on has started all the same.
func TestTheCleanupAfterAnError(t *testing.T) {
	t.Parallel()
	g, n, r := gomega.NewWithT(t), &notes{}, kopf.NewRegistry()
	r.OnCreate(examples, n.created, kopf.ID("create"))
	r.OnCleanup(func(context.Context, *kopf.Activity) error { n.add("cleanup"); return nil }, kopf.ID("cleanup"))
	config := cluster.Config()
	config.Host = "https://127.0.0.1:1"
	g.Expect(kopf.Run(t.Context(), kopf.Options{Registry: r, Config: config})).To(gomega.MatchError(gomega.ContainSubstring("127.0.0.1:1")))
	g.Expect(n.all()).To(gomega.Equal([]string{"cleanup"}))
}

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

// Shutdown has an order: handlers and daemons, then the cleanup handlers, then the entry
// among the peers.
func TestOrderOfShutdown(t *testing.T) {
	t.Parallel()
	g, n, namespace, r := gomega.NewWithT(t), &notes{}, cluster.Namespace(t), kopf.NewRegistry()
	meeting := testenv.NewObject("KopfPeering", namespace, "default", nil)
	g.Expect(cluster.Client().Create(t.Context(), meeting)).To(gomega.Succeed())
	entered, began := make(chan struct{}), make(chan struct{})
	r.OnCreate(examples, func(ctx context.Context, _ *kopf.Change) error {
		close(entered)
		<-ctx.Done()
		n.add("handler")
		return ctx.Err()
	}, kopf.ID("create"))
	r.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
		close(began)
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
			g.Expect(entries()).To(gomega.Equal(1), "the entry is gone too early")
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
	<-began
	g.Expect(stop()).To(gomega.Succeed())
	g.Expect(n.all()).To(gomega.HaveExactElements(
		gomega.BeElementOf("daemon", "handler"), gomega.BeElementOf("daemon", "handler"), "first", "first", "second", "third"))
	g.Expect(entries()).To(gomega.Equal(0))
}

// The contexts of cleanup handlers that do not return are canceled.
func TestShutdownCancelsCleanupHandlers(t *testing.T) {
	t.Parallel()
	g, n, namespace, r := gomega.NewWithT(t), &notes{}, cluster.Namespace(t), kopf.NewRegistry()
	r.OnCreate(examples, n.created, kopf.ID("create"))
	r.OnCleanup(func(ctx context.Context, _ *kopf.Activity) error {
		<-ctx.Done()
		n.add("canceled")
		return ctx.Err()
	}, kopf.ID("endless"))
	s := scoped(namespace)
	s.Execution.ShutdownTimeout = 500 * time.Millisecond
	o, stop := run(t, kopf.Options{Registry: r, Config: cluster.Config(), Settings: s})
	g.Eventually(o.Ready()).Should(gomega.BeClosed())
	_ = stop() // an error or none: the two limits are the same
	g.Expect(n.all()).To(gomega.Equal([]string{"canceled"}))
}

// A handler that ignores its context cannot be stopped, but is not waited for either.
func TestShutdownAbandonsHandlersThatDoNotReturn(t *testing.T) {
	t.Parallel()
	g, n, namespace, r := gomega.NewWithT(t), &notes{}, cluster.Namespace(t), kopf.NewRegistry()
	r.OnCreate(examples, n.created, kopf.ID("create"))
	proceed := make(chan struct{})
	defer close(proceed)
	r.OnCleanup(func(context.Context, *kopf.Activity) error { <-proceed; return nil }, kopf.ID("hung"))
	s := scoped(namespace)
	s.Execution.ShutdownTimeout = 100 * time.Millisecond
	o, stop := run(t, kopf.Options{Registry: r, Config: cluster.Config(), Settings: s})
	g.Eventually(o.Ready()).Should(gomega.BeClosed())
	g.Expect(stop()).To(gomega.MatchError(gomega.ContainSubstring("did not stop in time: its running parts are abandoned")))
}

// The cleanup handlers are called after an error, too.
func TestCleanupAfterAnError(t *testing.T) {
	t.Parallel()
	g, n, r := gomega.NewWithT(t), &notes{}, kopf.NewRegistry()
	r.OnCreate(examples, n.created, kopf.ID("create"))
	r.OnCleanup(func(context.Context, *kopf.Activity) error { n.add("cleanup"); return nil }, kopf.ID("cleanup"))
	config := cluster.Config()
	config.Host = "https://127.0.0.1:1"
	options := kopf.Options{Registry: r, Config: config}
	options.Settings.Networking.StartTimeout = time.Second
	g.Expect(kopf.Run(t.Context(), options)).To(gomega.MatchError(gomega.ContainSubstring("127.0.0.1:1")))
	g.Expect(n.all()).To(gomega.Equal([]string{"cleanup"}))
}

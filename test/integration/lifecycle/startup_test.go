package lifecycle

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// An operator makes no requests before the startup handlers have succeeded, and it uses
// the settings as the handlers have left them.
func TestNothingIsWatchedBeforeTheStartupHandlersSucceed(t *testing.T) {
	t.Parallel()
	g, n, namespace, r := gomega.NewWithT(t), &notes{}, cluster.Namespace(t), kopf.NewRegistry()
	entered, proceed := make(chan struct{}), make(chan struct{})
	r.OnStartup(func(_ context.Context, s *kopf.Startup) error {
		if s.Retry() == 0 {
			close(entered)
			<-proceed
			return errNo
		}
		s.Settings().Scope.Namespaces = []string{namespace}
		s.Settings().Persistence.Finalizer = "example.com/mine"
		return nil
	}, kopf.ID("startup"), kopf.Backoff(10*time.Millisecond))
	r.OnCreate(examples, n.created, kopf.ID("create"))
	r.OnDelete(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("delete"))
	elsewhere := cluster.Namespace(t)
	create(t, elsewhere, "other")
	create(t, namespace, "one")
	config := cluster.Config()
	requests := testenv.Count(config)
	o, stop := run(t, kopf.Options{Registry: r, Config: config})
	<-entered
	g.Expect(o.State()).To(gomega.Equal(kopf.OperatorState{}))
	g.Expect(requests.Requests()).To(gomega.BeEmpty())
	g.Expect(o.Ready()).NotTo(gomega.BeClosed())
	close(proceed)
	g.Eventually(o.Ready()).Should(gomega.BeClosed())
	g.Eventually(n.all).Should(gomega.Equal([]string{"created one"}))
	g.Eventually(cluster.Current(testenv.NewObject("KopfExample", namespace, "one", nil))).Should(testenv.HaveFinalizer("example.com/mine"))
	g.Expect(stop()).To(gomega.Succeed())
}

// A startup handler can prepare the cluster.
func TestStartupHandlersHaveAClient(t *testing.T) {
	t.Parallel()
	g, n, namespace, r := gomega.NewWithT(t), &notes{}, cluster.Namespace(t), kopf.NewRegistry()
	r.OnStartup(func(ctx context.Context, s *kopf.Startup) error {
		return s.Client().Create(ctx, testenv.NewObject("KopfExample", namespace, "prepared", nil))
	}, kopf.ID("prepare"))
	r.OnCreate(examples, n.created, kopf.ID("create"))
	_, stop := run(t, kopf.Options{Registry: r, Config: cluster.Config(), Settings: scoped(namespace)})
	g.Eventually(n.all).Should(gomega.Equal([]string{"created prepared"}))
	g.Expect(stop()).To(gomega.Succeed())
}

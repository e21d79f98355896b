package ensure

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestChangesDuringAnOutageAreRestored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, children, kopf.ID("children"))
	operator := b.start()
	b.expectHandled(b.shop("one", map[string]any{"replicas": int64(1)}))
	operator.Stop()
	b.patch(b.of(configMaps, "one"), `{"data":{"theme":"light"}}`)
	b.patch(b.of(deployments, "one"), `{"spec":{"paused":true}}`) // not a field of the handler
	b.remove(b.of(services, "one"))
	b.requests.Reset()
	b.start()
	b.expectChild(b.of(configMaps, "one"), testenv.HavePath("data.theme", "dark"))
	b.expectChild(b.of(services, "one"), beOurs())
	b.expectChild(b.of(deployments, "one"), testenv.HavePath("spec.paused", true))
	b.expectWrites(0, 2)
}

// The operator is stopped after it has applied the children, and before it has recorded that. Its
// successor has another function.
func TestStopBetweenApplyAndRecordWithAnotherFunction(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	applied := make(chan struct{})
	b.Ensure(shops, children, kopf.ID("children"))
	b.OnCreate(shops, func(ctx context.Context, _ *kopf.Change) error {
		close(applied)
		<-ctx.Done() // what the other handler has done is not recorded yet
		return ctx.Err()
	}, kopf.ID("waiting"))
	operator := b.start(func(o *kopf.Options) { o.Settings.Execution.GracePeriod = 1 })
	shop := b.shop("one", map[string]any{"replicas": int64(1)})
	b.Eventually(applied).Should(gomega.BeClosed())
	b.restart(operator, func(r *kopf.Registry) {
		r.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
			return family(c.Namespace(), c.Name(), 3)[:3], nil
		}, kopf.ID("children"))
	})
	b.expectChild(b.of(deployments, "one"), testenv.HavePath("spec.replicas", int64(3)))
	b.expectGone(b.of(secrets, "one"))
	b.expectHandled(shop)
}

func TestOperatorNeedsAName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, children, kopf.ID("children"))
	_, err := kopf.NewOperator(kopf.Options{Registry: b.Registry, Config: b.config})
	b.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("settings.Name")))
	b.OnStartup(func(context.Context, *kopf.Startup) error { return nil }, kopf.ID("it-can-set-the-name"))
	operator, err := kopf.NewOperator(kopf.Options{Registry: b.Registry, Config: b.config})
	b.Expect(err).NotTo(gomega.HaveOccurred())
	b.Expect(operator.Run(t.Context())).To(gomega.MatchError(gomega.ContainSubstring("settings.Name")))
}

package ensure

import (
	"context"
	"flag"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// webhooks runs another operator that changes children before they are stored, and never writes
// the same twice. Only the real API server calls them.
func (b *bench) webhooks() {
	b.t.Helper()
	var reviews atomic.Int64
	ours := kopf.Labels(map[string]kopf.Matcher{"mutate": kopf.Equal(b.namespace)})
	r := kopf.NewRegistry()
	r.OnMutate(kopf.Resource("v1", "configmaps"), func(_ context.Context, a *kopf.Admission) error {
		n := fmt.Sprint("webhook-", reviews.Add(1))
		a.Patch().Set(n, "data", "theme")
		a.Patch().Set(n, "metadata", "annotations", "example.com/reviewed")
		return nil
	}, kopf.ID("configmaps"), ours, kopf.Operations("CREATE", "UPDATE"))
	r.OnMutate(kopf.Resource("apps", "v1", "deployments"), func(_ context.Context, a *kopf.Admission) error {
		a.Patch().Apply(func(u *unstructured.Unstructured) error {
			containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			if err != nil || len(containers) == 0 {
				return err
			}
			web, _ := containers[0].(map[string]any)
			web["image"] = fmt.Sprint("mirror.example.com/shop:", reviews.Add(1))
			if len(containers) == 1 {
				containers = append(containers, map[string]any{"name": "sidecar", "image": "proxy"})
			}
			return unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
		})
		return nil
	}, kopf.ID("deployments"), ours, kopf.Operations("CREATE", "UPDATE"))
	operators.Start(b.t, cluster.Config(), b.namespace, r, func(o *kopf.Options) {
		o.Logger = b.logs.Logger()
		o.Settings.Admission.Managed = b.namespace + ".example.com"
		o.Settings.Admission.Server = servers.Server{Port: testenv.FreePort(b.t)}
	})
	b.Eventually(func() (string, error) {
		probe := object(configMaps, b.namespace, "probe", map[string]any{"data": map[string]any{"theme": "x"}})
		probe.SetLabels(map[string]string{"mutate": b.namespace})
		err := cluster.Client().Create(b.t.Context(), probe, client.DryRunAll)
		theme, _, _ := unstructured.NestedString(probe.Object, "data", "theme")
		return theme, err
	}).Should(gomega.HavePrefix("webhook-"), b.story)
}

// ofChildren returns the requests about children, except lists and watches.
func (b *bench) ofChildren() (found []string) {
	for _, request := range b.requests.Requests() {
		if request.Name == "one" && request.Resource != "kopfexamples" {
			found = append(found, request.String())
		}
	}
	return found
}

// The API server and webhooks write something else than the operator has applied: quantities,
// defaults, encoded secrets, other images, more containers. The operator is content with that.
func TestWhatWebhooksAndTheServerMakeOfChildrenIsNoDrift(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.webhooks()
	declare := func(r *kopf.Registry) {
		r.Ensure(shops, b.counted(func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
			all, err := children(ctx, c)
			for _, child := range all {
				child.SetLabels(map[string]string{"mutate": c.Namespace()})
			}
			return all, err
		}), kopf.ID("children"))
	}
	declare(b.Registry)
	operator := b.start()
	b.requests.Reset()
	b.expectHandled(b.shop("one", map[string]any{"replicas": int64(1)}))
	b.expectChild(b.of(configMaps, "one"), testenv.HavePath("data.theme", gomega.HavePrefix("webhook-")))
	b.expectChild(b.of(deployments, "one"), testenv.HavePath("spec.template.spec.containers", gomega.HaveLen(2)))
	b.expectWrites(2, 5)

	b.calls.Store(0)
	b.restart(operator, declare)
	b.Eventually(b.calls.Load).Should(gomega.BeEquivalentTo(1))
	b.expectRest()
	b.Expect(b.ofChildren()).To(gomega.BeEmpty())

	// The webhook takes part in the writes of other clients. The API server does not count what it
	// changes as their fields.
	before, _, _ := unstructured.NestedString(b.current(b.of(configMaps, "one")).Object, "data", "theme")
	b.as("other", b.of(configMaps, "one"), `{"data":{"more":"x"}}`)
	b.Expect(b.current(b.of(configMaps, "one"))).NotTo(testenv.HavePath("data.theme", before), "the webhook was called")
	b.as("autoscaler", b.of(deployments, "one"), `{"metadata":{"annotations":{"example.com/scaled":"yes"}}}`)
	b.expectRest()
	b.Expect(b.ofChildren()).To(gomega.BeEmpty())
	b.Expect(b.calls.Load()).To(gomega.BeEquivalentTo(1), "the function is not even called")

	b.as("other", b.of(configMaps, "one"), `{"data":{"theme":"light"}}`)
	b.Eventually(b.calls.Load).Should(gomega.BeEquivalentTo(2))
	b.expectWrites(0, 1)
	b.stayIdle()
}

// idle is how long an operator is watched at rest. The test is right without it: it says nothing
// about requests that begin after minutes.
var idle = flag.Duration("idle", 0, "how long an operator must make no requests at rest")

// stayIdle expects no requests for a while, except watches, which are renewed every few minutes,
// and discovery.
func (b *bench) stayIdle() {
	b.t.Helper()
	b.requests.Reset()
	<-time.After(*idle)
	b.expectRest()
	b.expectRequests("at rest", testenv.Snapshot{})
}

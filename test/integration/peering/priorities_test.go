package peering

import (
	"net/http"
	"testing"
	"time"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestDeveloperSuppressesTheDeployedOperators(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace := cluster.Namespace(t)
	object := create(t, cluster, api, "", namespace)
	config := cluster.Config()
	requests := testenv.Count(config)
	deployed := runPeering(t, config, "deployed", settings.Peering{Name: namespace, Priority: 1})
	g.Eventually(deployed.history).Should(gomega.Equal([]string{"active"}))
	spare := runPeering(t, config, "spare", settings.Peering{Name: namespace})
	g.Eventually(spare.history).Should(gomega.Equal([]string{"paused"}))
	developer := runPeering(t, config, "me@home/20201231235959/abc", settings.Peering{Name: namespace, Priority: settings.DevelopmentPriority})
	g.Eventually(deployed.history).Should(gomega.Equal([]string{"active", "paused"}))
	g.Eventually(developer.history).Should(gomega.Equal([]string{"active"}))
	g.Expect(entries(cluster, object)()).To(gomega.HaveKeyWithValue("me@home/20201231235959/abc", gomega.And(
		gomega.HaveLen(3),
		gomega.HaveKeyWithValue("priority", int64(666)),
		gomega.HaveKeyWithValue("lifetime", int64(60)),
		gomega.HaveKeyWithValue("lastseen", gomega.MatchRegexp(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$`)),
	)))

	developer.stop()
	g.Eventually(deployed.history).Should(gomega.Equal([]string{"active", "paused", "active"}))
	g.Expect(entries(cluster, object)()).To(gomega.And(gomega.HaveLen(2), gomega.HaveKey("deployed"), gomega.HaveKey("spare")))
	deployed.stop()
	g.Eventually(spare.history).Should(gomega.Equal([]string{"paused", "active"}))
	spare.stop()
	g.Expect(entries(cluster, object)()).To(gomega.BeEmpty())
	g.Expect(requests.Snapshot()[testenv.Key{Method: http.MethodPatch, Target: "clusterkopfpeerings"}]).To(gomega.Equal(6), "each operator writes its entry and removes it: %s", requests)
}

func TestEqualPrioritiesConflict(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace := cluster.Namespace(t)
	create(t, cluster, api, namespace, "default")
	one := runPeering(t, cluster.Config(), "one", settings.Peering{}, namespace)
	g.Eventually(one.history).Should(gomega.Equal([]string{"active"}))
	two := runPeering(t, cluster.Config(), "two", settings.Peering{}, namespace)
	g.Eventually(one.history).Should(gomega.Equal([]string{"active", "paused"}))
	g.Eventually(two.history).Should(gomega.Equal([]string{"paused"}))
	three := runPeering(t, cluster.Config(), "three", settings.Peering{Priority: 1}, namespace)
	g.Eventually(three.history).Should(gomega.Equal([]string{"active"}), "a higher priority is not affected")
	g.Expect(two.lines()).To(gomega.ContainElement(gomega.ContainSubstring("several operators have the same priority")))
}

func TestEntryOfAKilledOperatorExpires(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace := cluster.Namespace(t)
	object := create(t, cluster, api, namespace, "default")
	text := `{"status":{"killed":{"priority":100,"lifetime":2,"lastseen":"` + time.Now().UTC().Format("2006-01-02T15:04:05") + `"},"note":"mine"}}`
	err := cluster.Client().Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(text)))
	g.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrue(), "the schema must reject it: %v", err)
	text = text[:len(text)-len(`,"note":"mine"}}`)] + "}}"
	g.Expect(cluster.Client().Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(text)))).To(gomega.Succeed())

	o := runPeering(t, cluster.Config(), "me", settings.Peering{}, namespace)
	g.Eventually(o.history).Should(gomega.Equal([]string{"paused"}))
	g.Eventually(o.history).Should(gomega.Equal([]string{"paused", "active"}))
	g.Eventually(entries(cluster, object)).Should(gomega.And(gomega.HaveLen(1), gomega.HaveKey("me")))
}

func TestEntriesAreRenewedInTime(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace := cluster.Namespace(t)
	create(t, cluster, api, namespace, "default")
	high := runPeering(t, cluster.Config(), "high", settings.Peering{Priority: 1, Lifetime: shortLifetime}, namespace)
	g.Eventually(high.history).Should(gomega.Equal([]string{"active"}))
	low := runPeering(t, cluster.Config(), "low", settings.Peering{}, namespace)
	g.Eventually(low.history).Should(gomega.Equal([]string{"paused"}))
	g.Consistently(low.history, 3*shortLifetime).Should(gomega.Equal([]string{"paused"}))
}

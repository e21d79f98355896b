package health

import (
	"net/http"
	"testing"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestOperatorIsReadyWhenItsObjectsAreListed(t *testing.T) {
	t.Parallel()
	g, o := gomega.NewWithT(t), &outage{}
	o.on.Store(true)
	registry, address := kopf.NewRegistry(), testenv.FreeAddress(t)
	registry.OnCreate(examples, succeed, kopf.ID("create_fn"))
	options := kopf.Options{Registry: registry, Config: o.of(cluster.Config())}
	options.Settings.Scope.Namespaces = []string{cluster.Namespace(t)}
	options.Settings.Health.Address = address
	background(t, options)

	g.Eventually(asking(address, "/readyz")).Should(says(http.StatusServiceUnavailable,
		"[-]"+resource+"/"+options.Settings.Scope.Namespaces[0]+" not listed yet: ", "[-]start", "not ready\n"))
	g.Expect(asking(address, "/readyz")().Body).NotTo(gomega.ContainSubstring(canary))
	g.Expect(asking(address, "/healthz")()).To(says(http.StatusOK, "{}"), "the process is alive")
	o.on.Store(false)
	g.Eventually(asking(address, "/readyz")).Should(says(http.StatusOK, "[+]"+resource, "[+]queue ok", "[+]handling ok\nready\n"))
}

func TestReadinessReportsAFailedWatchUntilItRecovers(t *testing.T) {
	t.Parallel()
	g, o := gomega.NewWithT(t), &outage{}
	registry, address, namespace := kopf.NewRegistry(), testenv.FreeAddress(t), cluster.Namespace(t)
	registry.OnCreate(examples, succeed, kopf.ID("create_fn"))
	operators.Start(t, o.of(cluster.Config()), namespace, registry, func(options *kopf.Options) {
		options.Settings.Health.Address = address
		options.Settings.Name = t.Name()
	})
	g.Eventually(asking(address, "/readyz")).Should(says(http.StatusOK))
	watch := "/readyz/" + resource + "/" + namespace
	g.Expect(asking(address, watch)()).To(says(http.StatusOK, "[+]"+resource+"/"+namespace+" ok\n"))

	o.begin()
	g.Eventually(asking(address, "/readyz")).Should(says(http.StatusServiceUnavailable, "[-]"+resource+"/"+namespace+" not watched now: "))
	g.Expect(asking(address, "/readyz")().Body).NotTo(gomega.ContainSubstring(canary))
	g.Expect(asking(address, watch)()).To(says(http.StatusServiceUnavailable, "not watched now: "))
	g.Expect(asking(address, "/readyz/queue")()).To(says(http.StatusOK))
	g.Expect(asking(address, "/readyz?verbose&exclude="+resource+"/"+namespace)()).To(says(http.StatusOK, " excluded: ok"))
	g.Eventually(series(t.Name())).Should(gomega.HaveKeyWithValue("kopf_watches resource="+resource+" state=failing", 1.0))
	g.Expect(sum(t.Name(), "kopf_watch_restarts_total")).To(gomega.BeNumerically(">", 0))

	o.on.Store(false)
	g.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, "one", nil))).To(gomega.Succeed())
	g.Eventually(asking(address, "/readyz")).Should(says(http.StatusOK, "ready"))
	g.Eventually(series(t.Name())).Should(gomega.HaveKeyWithValue("kopf_watches resource="+resource+" state=alive", 1.0))
}

func TestReadinessReportsAStalledQueueUntilItMoves(t *testing.T) {
	t.Parallel()
	g, release := gomega.NewWithT(t), make(chan struct{})
	registry, address, namespace := kopf.NewRegistry(), testenv.FreeAddress(t), cluster.Namespace(t)
	// A handler would give back its worker; a filter does not.
	registry.OnCreate(examples, succeed, kopf.ID("create_fn"), kopf.When(func(kopf.Arguments) bool {
		<-release
		return true
	}))
	operators.Start(t, cluster.Config(), namespace, registry, func(options *kopf.Options) {
		options.Settings.Health.Address, options.Settings.Health.MaxQueueAge = address, 100*time.Millisecond
		options.Settings.Name = t.Name()
		options.Settings.Execution.Workers = 1
	})
	g.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, "one", nil))).To(gomega.Succeed())
	g.Eventually(series(t.Name())).Should(gomega.HaveKeyWithValue("kopf_workers_busy", 1.0))
	g.Consistently(asking(address, "/readyz"), 300*time.Millisecond).Should(says(http.StatusOK), "objects that are being handled do not wait")

	g.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, "two", nil))).To(gomega.Succeed())
	g.Eventually(asking(address, "/readyz")).Should(says(http.StatusServiceUnavailable, "[-]queue stalled: 1 object is waiting", "1 of 1 worker is busy"))
	g.Expect(series(t.Name())()).To(gomega.And(
		gomega.HaveKeyWithValue("kopf_queue_depth", 1.0), gomega.HaveKeyWithValue("kopf_workers", 1.0),
		gomega.HaveKeyWithValue("kopf_queue_oldest_seconds", gomega.BeNumerically(">", 0.1))))
	close(release)
	g.Eventually(asking(address, "/readyz")).Should(says(http.StatusOK, "[+]queue ok"))
	g.Eventually(series(t.Name())).Should(gomega.And(
		gomega.HaveKeyWithValue("kopf_queue_depth", 0.0), gomega.HaveKeyWithValue("kopf_workers_busy", 0.0)))
}

func TestPausedOperatorIsReady(t *testing.T) {
	t.Parallel()
	g, registry, address, namespace := gomega.NewWithT(t), kopf.NewRegistry(), testenv.FreeAddress(t), cluster.Namespace(t)
	registry.OnCreate(examples, succeed, kopf.ID("create_fn"))
	peering := testenv.NewObject("KopfPeering", namespace, "default", nil)
	peering.Object["status"] = map[string]any{"other-operator": map[string]any{
		"priority": int64(1000), "lifetime": int64(3600), "lastseen": metav1.Now().UTC().Format(time.RFC3339),
	}}
	g.Expect(cluster.Client().Create(t.Context(), peering)).To(gomega.Succeed())
	operators.Start(t, cluster.Config(), namespace, registry, func(options *kopf.Options) {
		options.Settings.Health.Address = address
		options.Settings.Name = t.Name()
	})
	g.Eventually(asking(address, "/readyz")).Should(says(http.StatusOK, "[+]handling ok: paused: another operator handles the objects"))
	g.Expect(series(t.Name())()).To(gomega.And(gomega.HaveKeyWithValue("kopf_paused", 1.0), gomega.HaveKeyWithValue("kopf_leading", 1.0)))
}

package health

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// manage runs a manager with an operator added to it.
func manage(t *testing.T, g *gomega.WithT, connection *rest.Config, options ctrl.Options, settings kopf.Settings) {
	t.Helper()
	registry := kopf.NewRegistry()
	registry.OnCreate(examples, succeed, kopf.ID("create_fn"))
	options.Controller = config.Controller{SkipNameValidation: new(true)}
	options.Logger, options.Metrics = testenv.Logger(), metricsserver.Options{BindAddress: "0"}
	mgr, err := ctrl.NewManager(connection, options)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(mgr.AddReadyzCheck("ping", healthz.Ping)).To(gomega.Succeed())
	_, err = kopf.Add(mgr, kopf.Options{Registry: registry, Settings: settings})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	})
}

func TestReadinessOfAManagerIncludesTheOperator(t *testing.T) {
	t.Parallel()
	g, o, address := gomega.NewWithT(t), &outage{}, testenv.FreeAddress(t)
	var settings kopf.Settings
	settings.Scope.Namespaces = []string{cluster.Namespace(t)}
	settings.Health.ManagerCheck, settings.Name = "kopf", t.Name()
	manage(t, g, o.of(cluster.Config()), ctrl.Options{HealthProbeBindAddress: address}, settings)
	g.Eventually(asking(address, "/readyz?verbose")).Should(says(http.StatusOK, "[+]kopf ok", "[+]ping ok"))
	o.begin()
	g.Eventually(asking(address, "/readyz?verbose")).Should(says(http.StatusInternalServerError, "[-]kopf failed", "[+]ping ok"))
}

func TestStandbyReplicaIsReady(t *testing.T) {
	t.Parallel()
	g, address, namespace := gomega.NewWithT(t), testenv.FreeAddress(t), cluster.Namespace(t)
	var settings kopf.Settings
	settings.Scope.Namespaces = []string{namespace}
	settings.Health.Address, settings.Name = address, t.Name()
	g.Expect(cluster.Client().Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "leader"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("another-replica"), LeaseDurationSeconds: new(int32(3600)),
			AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro()),
		},
	})).To(gomega.Succeed())
	manage(t, g, cluster.Config(), ctrl.Options{
		HealthProbeBindAddress: "0", LeaderElection: true, LeaderElectionID: "leader", LeaderElectionNamespace: namespace,
		LeaseDuration: new(time.Hour), RenewDeadline: new(time.Minute),
	}, settings)
	g.Eventually(asking(address, "/readyz")).Should(says(http.StatusOK, "[+]"+resource, "[+]handling ok: this replica is on standby\nready\n"))
	g.Expect(series(t.Name())()).To(gomega.And(gomega.HaveKeyWithValue("kopf_leading", 0.0), gomega.HaveKeyWithValue("kopf_ready", 1.0)))
}

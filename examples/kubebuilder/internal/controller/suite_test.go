package controller_test

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	webv1 "github.com/kopf-go/kopf/examples/kubebuilder/api/v1"
	"github.com/kopf-go/kopf/examples/kubebuilder/internal/controller"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// patience is for busy machines: the specs end as soon as they can.
const patience = 30 * time.Second

// k8sClient has all permissions.
var k8sClient client.Client

// kubeconfig has them, too. It is for commands.
var kubeconfig []byte

// account connects the manager, with the permissions of the deployed one. Its requests are
// recorded.
var account *rest.Config

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Controller Suite")
}

var _ = BeforeSuite(func() {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	SetDefaultEventuallyTimeout(patience)

	testEnv := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	config, err := testEnv.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(testEnv.Stop)

	Expect(webv1.AddToScheme(scheme.Scheme)).To(Succeed())
	k8sClient, err = client.New(config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())

	kubeconfig = testEnv.KubeConfig
	installRoles(context.Background())
	account = newAccount(testEnv)
	hooks := testEnv.WebhookInstallOptions
	mgr, err := ctrl.NewManager(account, ctrl.Options{
		Scheme:                        scheme.Scheme,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "sites.web.example.com",
		LeaderElectionNamespace:       accountNamespace,
		LeaderElectionReleaseOnCancel: true,
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir,
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	operator, err := kopf.Add(mgr, kopf.Options{Registry: newRegistry(), Settings: newSettings(mgr, hooks)})
	Expect(err).NotTo(HaveOccurred())

	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(stopped).Should(Receive(Succeed()))
	})
	Eventually(operator.Ready()).Should(BeClosed())
})

func newRegistry() *kopf.Registry {
	registry := kopf.NewRegistry()
	controller.AddSites(registry)
	controller.AddSchedules(registry)
	controller.AddSiteAdmission(registry)
	controller.AddCronJobs(registry)
	controller.AddCronJobAdmission(registry)
	return registry
}

// newSettings lets the API server of the tests call the webhook server of the manager, on this
// machine.
func newSettings(mgr ctrl.Manager, hooks envtest.WebhookInstallOptions) kopf.Settings {
	settings := kopf.Settings{}
	settings.Peering.Standalone = true
	settings.Admission.Managed = configurationName
	url := "https://" + net.JoinHostPort(hooks.LocalServingHost, strconv.Itoa(hooks.LocalServingPort))
	settings.Admission.Server = servers.Mounted{
		Server:       mgr.GetWebhookServer(),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: hooks.LocalServingCAData},
	}
	return settings
}

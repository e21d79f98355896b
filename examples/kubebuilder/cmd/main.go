// Command main is the manager of this project: the one that kubebuilder writes, with
// kopf.Add in place of the reconcilers.
package main

import (
	"context"
	"flag"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "github.com/kopf-go/kopf/examples/kubebuilder/api/v1"
	"github.com/kopf-go/kopf/examples/kubebuilder/internal/controller"
	"github.com/kopf-go/kopf/pkg/kopf"
)

// webhookConfiguration is the name of the configurations in config/webhook, with the prefix of
// config/default.
const webhookConfiguration = "sites-web.example.com"

type flags struct {
	metrics, probes string
	secure, elect   bool
}

func main() {
	var given flags
	flag.StringVar(&given.metrics, "metrics-bind-address", "0", "The address of the metrics: :8443, or 0 for none.")
	flag.BoolVar(&given.secure, "metrics-secure", true, "Serve the metrics over HTTPS, for authorized readers only.")
	flag.StringVar(&given.probes, "health-probe-bind-address", ":8081", "The address of the probes.")
	flag.BoolVar(&given.elect, "leader-elect", false, "Elect a leader among the replicas.")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	if err := run(ctrl.SetupSignalHandler(), given); err != nil {
		ctrl.Log.Error(err, "The manager has failed.")
		os.Exit(1)
	}
}

func run(ctx context.Context, given flags) error {
	mgr, err := newManager(given)
	if err != nil {
		return err
	}
	if err := addHandlers(mgr); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(given flags) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := webv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	metrics := metricsserver.Options{BindAddress: given.metrics, SecureServing: given.secure}
	if given.secure {
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metrics,
		HealthProbeBindAddress:        given.probes,
		LeaderElection:                given.elect,
		LeaderElectionID:              "sites.web.example.com",
		LeaderElectionReleaseOnCancel: true, // main exits as soon as the manager has stopped
	})
}

// addHandlers is what a project with handlers has in place of SetupWithManager.
func addHandlers(mgr ctrl.Manager) error {
	registry := kopf.NewRegistry()
	controller.AddSites(registry)
	controller.AddSchedules(registry)

	settings := kopf.Settings{}
	settings.Peering.Standalone = true // the lease is enough
	settings.Health.ManagerCheck = "handlers"
	if os.Getenv("ENABLE_WEBHOOKS") != "false" {
		controller.AddSiteAdmission(registry)
		settings.Admission.Managed = webhookConfiguration
		settings.Admission.Server = kopf.MountedServer{
			Server: mgr.GetWebhookServer(),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
				Namespace: os.Getenv("POD_NAMESPACE"), Name: os.Getenv("WEBHOOK_SERVICE"),
			}},
		}
	}
	_, err := kopf.Add(mgr, kopf.Options{Registry: registry, Settings: settings})
	return err
}

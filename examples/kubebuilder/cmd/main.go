// Command main is the manager of this project: the one that kubebuilder writes, with
// kopf.Add in place of the reconcilers.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "github.com/kopf-go/kopf/examples/kubebuilder/api/v1"
	"github.com/kopf-go/kopf/examples/kubebuilder/internal/controller"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// webhookConfiguration is the name of the configurations in config/webhook, with the prefix of
// config/default.
const webhookConfiguration = "sites-web.example.com"

// leaderElectionID is the name of the lease.
const leaderElectionID = "sites.web.example.com"

type flags struct {
	metrics, probes string
	secure, elect   bool
	shards          int
}

func main() {
	os.Exit(kopf.ExitCode(newCommand(flag.CommandLine).ExecuteContext(ctrl.SetupSignalHandler())))
}

// newCommand returns the manager with the flags that kubebuilder gives it, and with commands that
// answer questions about its handlers: "manager explain site/my-site".
func newCommand(own *flag.FlagSet) *cobra.Command {
	var given flags
	own.StringVar(&given.metrics, "metrics-bind-address", "0", "The address of the metrics: :8443, or 0 for none.")
	own.BoolVar(&given.secure, "metrics-secure", true, "Serve the metrics over HTTPS, for authorized readers only.")
	own.StringVar(&given.probes, "health-probe-bind-address", ":8081", "The address of the probes.")
	own.BoolVar(&given.elect, "leader-elect", false, "Elect a leader among the replicas.")
	own.IntVar(&given.shards, "shards", 0, "Divide the objects into as many shards, which the replicas share, instead of electing a leader.")
	logging := zap.Options{}
	logging.BindFlags(own)
	root := &cobra.Command{
		Use: "manager", Short: "Run the manager", Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
			return run(command.Context(), given)
		},
	}
	root.Flags().AddGoFlagSet(own)
	root.AddCommand(kopf.Commands(func(o *kopf.Options) {
		o.Registry, o.Scheme, o.Settings = newRegistry(), newScheme(), newSettings(given)
		o.Settings.Replicas.LeaseName = leaderElectionID // without shards, kopf.Add leaves the lease to the manager
	})...)
	return root
}

func run(ctx context.Context, given flags) error {
	mgr, err := newManager(given)
	if err != nil {
		return err
	}
	if err := addHandlers(mgr, given); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(webv1.AddToScheme(scheme))
	return scheme
}

func newManager(given flags) (ctrl.Manager, error) {
	metrics := metricsserver.Options{BindAddress: given.metrics, SecureServing: given.secure}
	if given.secure {
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(config, ctrl.Options{
		Scheme:                        newScheme(),
		Metrics:                       metrics,
		HealthProbeBindAddress:        given.probes,
		LeaderElection:                given.elect,
		LeaderElectionID:              leaderElectionID,
		LeaderElectionReleaseOnCancel: true, // main exits as soon as the manager has stopped
	})
}

// addHandlers is what a project with handlers has in place of SetupWithManager.
func addHandlers(mgr ctrl.Manager, given flags) error {
	settings := newSettings(given)
	if settings.Admission.Managed != "" {
		settings.Admission.Server = servers.Mounted{
			Server: mgr.GetWebhookServer(),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
				Namespace: os.Getenv("POD_NAMESPACE"), Name: os.Getenv("WEBHOOK_SERVICE"),
			}},
		}
	}
	_, err := kopf.Add(mgr, kopf.Options{Registry: newRegistry(), Settings: settings})
	return err
}

func newRegistry() *kopf.Registry {
	registry := kopf.NewRegistry()
	controller.AddSites(registry)
	controller.AddSchedules(registry)
	controller.AddCronJobs(registry)
	if hasWebhooks() {
		controller.AddSiteAdmission(registry)
		controller.AddCronJobAdmission(registry)
	}
	return registry
}

func newSettings(given flags) kopf.Settings {
	settings := kopf.Settings{}
	settings.Peering.Standalone = true // the lease is enough
	if given.shards > 0 {
		settings.Replicas.Shards = given.shards
		settings.Replicas.LeaseName = leaderElectionID
		settings.Replicas.LeaseNamespace = os.Getenv("POD_NAMESPACE")
	}
	settings.Health.ManagerCheck = "handlers"
	if hasWebhooks() {
		settings.Admission.Managed = webhookConfiguration
	}
	return settings
}

func hasWebhooks() bool { return os.Getenv("ENABLE_WEBHOOKS") != "false" }

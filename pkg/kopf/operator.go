package kopf

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-go/kopf/pkg/kopf/settings"
)

// Options are what an operator that is run by Run consists of. Every field has a
// default.
type Options struct {
	// Registry has the handlers. Default: DefaultRegistry.
	Registry *Registry
	// Settings tune the operator. Default: settings.Default.
	Settings Settings
	// Config reaches the cluster. Default: as kubectl does it, or the service
	// account of the pod.
	Config *rest.Config
	// Logger takes the log. Default: what ctrl.SetLogger was given.
	Logger logr.Logger
	// Scheme knows the Go types of typed handlers and of the handlers' client.
	// Default: the built-in types of Kubernetes.
	Scheme *runtime.Scheme
	// Ready is closed when all objects are known and handlers can be called.
	// Default: nobody is told.
	Ready chan<- struct{}
}

// Run runs an operator until the context is done. It returns when all handlers
// have returned: by themselves within the grace period, or because their context
// was cancelled after it. It returns an error if the operator could not be
// started, or could not go on; the mistakes in the declarations of the handlers
// are found before anything is started.
//
// Several operators can run in one process, each with its own registry.
func Run(ctx context.Context, options Options) error {
	options, err := options.withDefaults()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(options.Config, manager.Options{
		Scheme:                  options.Scheme,
		Logger:                  options.Logger.WithName("manager").V(2), // its comings and goings are of no interest
		Metrics:                 metrics.Options{BindAddress: "0"},       // nothing listens unless asked
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: ptr.To(options.Settings.WithDefaults().Execution.GracePeriod + shutdownReserve),
		Controller:              crconfig.Controller{SkipNameValidation: ptr.To(true)},
		NewClient:               liveClient(options.Logger.WithName("client")),
	})
	if err != nil {
		return fmt.Errorf("the operator cannot be set up: %w", err)
	}
	if err := addOperator(mgr, options, noServer); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// shutdownReserve is what is left for final writes and events after the grace
// period of the handlers.
const shutdownReserve = 5 * time.Second

// liveClient reads from the API server, so that a Get in a handler never starts
// to watch a whole resource behind the developer's back.
func liveClient(logger logr.Logger) client.NewClientFunc {
	return func(config *rest.Config, options client.Options) (client.Client, error) {
		options.Cache, options.Log = nil, logger
		return client.New(config, options)
	}
}

func (o Options) withDefaults() (Options, error) {
	if o.Registry == nil {
		o.Registry = DefaultRegistry
	}
	if o.Scheme == nil {
		o.Scheme = scheme.Scheme
	}
	if o.Logger.GetSink() == nil {
		o.Logger = ctrl.Log
	}
	if o.Config == nil {
		config, err := ctrl.GetConfig()
		if err != nil {
			return o, fmt.Errorf("no cluster is configured: set KUBECONFIG, or use --kubeconfig: %w", err)
		}
		o.Config = config
	}
	o.Config = limited(o.Config, o.Settings.WithDefaults().Networking)
	return o, nil
}

// limited applies the settings of the operator to its connection.
func limited(config *rest.Config, n settings.Networking) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = n.QPS, n.Burst
	if config.UserAgent == "" {
		config.UserAgent = "kopf-go"
	}
	return config
}

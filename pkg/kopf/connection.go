package kopf

import (
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-go/kopf/pkg/kopf/settings"
)

// connection is what an operator of its own has of the cluster. Nothing is called
// before somebody asks.
type connection struct {
	options  Options
	settings *Settings // as they are when somebody asks

	once sync.Once
	made client.Client
}

// client is for the handlers of the operator as a whole; nil if no cluster is
// configured.
func (c *connection) client() client.Client {
	c.once.Do(func() {
		config, err := c.config()
		if err == nil {
			c.made, err = liveClient(c.options.Logger)(config, client.Options{Scheme: c.options.Scheme})
		}
		if err != nil {
			c.options.Logger.Error(err, "There is no client for the handlers of the operator.")
		}
	})
	return c.made
}

// config reaches the cluster.
func (c *connection) config() (*rest.Config, error) {
	config := c.options.Config
	if config == nil {
		found, err := ctrl.GetConfig()
		if err != nil {
			return nil, fmt.Errorf("no cluster is configured: set KUBECONFIG, or use --kubeconfig: %w", err)
		}
		config = found
	}
	return limited(config, c.settings.WithDefaults().Networking), nil
}

// manager is what runs the operator, and nothing else.
func (c *connection) manager() (manager.Manager, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	s := c.settings.WithDefaults()
	logger := c.options.Logger.WithName("manager").V(2) // its comings and goings are of no interest
	options := manager.Options{
		Scheme:                  c.options.Scheme,
		Logger:                  logger,
		Metrics:                 metrics.Options{BindAddress: "0"}, // nothing listens unless asked
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: ptr.To(s.Execution.ExitTimeout),
		Controller:              crconfig.Controller{SkipNameValidation: ptr.To(true)},
		NewClient:               liveClient(c.options.Logger.WithName("client")),
	}
	elect(&options, s.Replicas)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("the operator cannot be set up: %w", err)
	}
	return mgr, nil
}

// elect makes the manager take part in an election, if there is one.
func elect(options *manager.Options, r settings.Replicas) {
	if !r.Elected {
		return
	}
	options.LeaderElection = true
	options.LeaderElectionID, options.LeaderElectionNamespace = r.LeaseName, r.LeaseNamespace
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &r.LeaseDuration, &r.RenewDeadline, &r.RetryPeriod
	// The next leader need not wait; nothing of this one works by then.
	options.LeaderElectionReleaseOnCancel = true
}

// liveClient reads from the API server, so that a Get in a handler never starts
// to watch a whole resource behind the developer's back.
func liveClient(logger logr.Logger) client.NewClientFunc {
	return func(config *rest.Config, options client.Options) (client.Client, error) {
		options.Cache, options.Log = nil, logger
		return client.New(config, options)
	}
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

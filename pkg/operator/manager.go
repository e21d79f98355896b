package operator

import (
	"fmt"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/settings"
)

// manager is what runs the operator, and nothing else.
func (c *connection) manager() (manager.Manager, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	s := c.settings.WithDefaults()
	logger := murmur(c.options.Logger.WithName("manager"))
	options := manager.Options{
		Scheme:                  c.options.Scheme,
		Logger:                  logger,
		Metrics:                 metricsOptions(s.Metrics),
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: ptr.To(s.Execution.ShutdownTimeout),
		Controller:              crconfig.Controller{SkipNameValidation: ptr.To(true)},
		NewClient:               liveClient(c.options.Logger.WithName("client")),
	}
	elect(&options, s.Replicas)
	mgr, err := ctrl.NewManager(config, options)
	switch {
	case err == nil:
		return mgr, nil
	case s.Replicas.LeaderElection && s.Replicas.LeaseNamespace == "":
		return nil, fmt.Errorf("the operator cannot be set up: outside of a cluster settings.Replicas.LeaseNamespace (--lease-namespace) is needed: %w", err)
	default:
		return nil, fmt.Errorf("the operator cannot be set up: %w", err)
	}
}

// elect makes the manager take part in an election, if there is one.
func elect(options *manager.Options, r settings.Replicas) {
	if !r.LeaderElection {
		return
	}
	options.LeaderElection = true
	options.LeaderElectionID, options.LeaderElectionNamespace = r.LeaseName, r.LeaseNamespace
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &r.LeaseDuration, &r.RenewDeadline, &r.RetryPeriod
	// The next leader need not wait; nothing of this one works by then.
	options.LeaderElectionReleaseOnCancel = true
}

package operator

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/settings"
)

// newManager returns a manager that runs only the operator. The values of the context reach
// the handlers; the manager decides when their contexts end.
func (c *connection) newManager(ctx context.Context) (manager.Manager, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	s := c.operator.settings.WithDefaults()
	logger := c.operator.options.Logger
	options := manager.Options{
		Scheme:                  c.operator.options.Scheme,
		Logger:                  quiet(logger.WithName("manager")),
		Metrics:                 metricsOptions(s.Metrics),
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: new(s.Execution.ShutdownTimeout),
		Controller:              crconfig.Controller{SkipNameValidation: new(true)},
		NewClient:               liveClient(logger.WithName("client")),
		BaseContext:             func() context.Context { return context.WithoutCancel(ctx) },
	}
	setElection(&options, s.Replicas)
	mgr, err := ctrl.NewManager(config, options)
	switch {
	case err == nil:
		return mgr, nil
	case s.Replicas.LeaderElection && s.Replicas.LeaseNamespace == "":
		return nil, fmt.Errorf("the operator cannot be set up: outside a cluster, set settings.Replicas.LeaseNamespace (--lease-namespace): %w", err)
	default:
		return nil, fmt.Errorf("the operator cannot be set up: %w", err)
	}
}

// setElection enables the leader election of the manager if the settings require it.
func setElection(options *manager.Options, r settings.Replicas) {
	if !r.LeaderElection {
		return
	}
	options.LeaderElection = true
	options.LeaderElectionID = r.LeaseName
	options.LeaderElectionNamespace = r.LeaseNamespace
	options.LeaseDuration = &r.LeaseDuration
	options.RenewDeadline = &r.RenewDeadline
	options.RetryPeriod = &r.RetryPeriod
	// The next leader can start immediately: this one has stopped by then.
	options.LeaderElectionReleaseOnCancel = true
}

// addTo adds runnables to a manager.
func addTo(mgr manager.Manager, runnables ...runnable) error {
	for _, r := range runnables {
		if err := mgr.Add(r); err != nil {
			return fmt.Errorf("the operator cannot be added to the manager: %w", err)
		}
	}
	return nil
}

// phase is a part of an operator's life. It returns when the context is done and its work
// has stopped, or when it fails.
type phase = func(context.Context) error

// runnable is a phase that a manager runs.
type runnable struct {
	phase
	leaderOnly bool
}

// everyReplica returns a runnable for every replica.
func everyReplica(p phase) runnable { return runnable{p, false} }

// leaderOnly returns a runnable for the leader.
func leaderOnly(p phase) runnable { return runnable{p, true} }

// Start runs the phase.
func (r runnable) Start(ctx context.Context) error { return r.phase(ctx) }

// NeedLeaderElection reports whether the manager must wait for the leadership.
func (r runnable) NeedLeaderElection() bool { return r.leaderOnly }

// leaseOf returns the lease of the leader election, or an empty name without an election.
func leaseOf(r settings.Replicas) types.NamespacedName {
	if !r.LeaderElection {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: cmp.Or(r.LeaseNamespace, podNamespace()), Name: r.LeaseName}
}

// leaseName returns the lease as namespace and name, or "" without an election.
func leaseName(r settings.Replicas) string {
	if !r.LeaderElection {
		return ""
	}
	return leaseOf(r).String()
}

// podNamespace returns the namespace in which the operator runs, or "" outside a cluster.
func podNamespace() string {
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// quietSink is the log sink of a manager that belongs to the operator. Its routine lines are
// not interesting: the manager returns important errors, and the rest is the noise of an
// orderly shutdown.
type quietSink struct{ logr.LogSink }

// quietLevel is the verbosity of the manager's lines.
const quietLevel = 2

// quiet returns a logger whose lines, errors included, are written at quietLevel.
func quiet(logger logr.Logger) logr.Logger {
	if logger.GetSink() == nil {
		return logger
	}
	return logr.New(quietSink{logger.GetSink()}).V(quietLevel)
}

// Error writes the error as a line at quietLevel.
func (q quietSink) Error(err error, message string, values ...any) {
	q.Info(quietLevel, message, append(values, "error", err)...)
}

// WithValues returns a quiet sink with the values.
func (q quietSink) WithValues(values ...any) logr.LogSink {
	return quietSink{q.LogSink.WithValues(values...)}
}

// WithName returns a quiet sink with the name.
func (q quietSink) WithName(name string) logr.LogSink { return quietSink{q.LogSink.WithName(name)} }

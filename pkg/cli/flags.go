package cli

import (
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/settings"
)

// flags are those of an operator. Where a flag is a setting, it is defined on the
// setting itself.
type flags struct {
	settings   settings.Settings
	scope      scope
	dev        bool
	connection connection
	logging    logFlags
}

func newFlags() *flags { return &flags{settings: settings.Default()} }

// define declares the flags, in the order of the help.
func (f *flags) define(set *pflag.FlagSet) {
	set.SortFlags = false
	defineGroup(set, "Which objects", f.scope.define)
	defineGroup(set, "Beside other operators", f.definePeering)
	defineGroup(set, "In several replicas", f.defineReplicas)
	defineGroup(set, "Health and metrics", f.defineServing)
	defineGroup(set, "Work", f.defineWork)
	defineGroup(set, "Log", f.logging.define)
	defineGroup(set, "Connection", f.connection.define)
}

func (f *flags) definePeering(set *pflag.FlagSet) {
	p := &f.settings.Peering
	set.StringVar(&p.Name, "peering", p.Name, "the `name` of the peering object; if it is given, the operator pauses as long as there is none")
	set.IntVarP(&p.Priority, "priority", "p", p.Priority, "the priority among the operators of the peering: all but the highest one pause")
	set.BoolVar(&f.dev, "dev", false, "be active instead of a deployed operator: the priority 666")
	set.BoolVar(&p.Standalone, "standalone", p.Standalone, "be active whatever other operators do")
}

func (f *flags) defineReplicas(set *pflag.FlagSet) {
	r := &f.settings.Replicas
	set.BoolVar(&r.LeaderElection, "leader-elect", r.LeaderElection, "elect one of several replicas, which works while the others stand by")
	set.StringVar(&r.LeaseName, "lease-name", r.LeaseName, "the `name` of the lease by which they agree")
	set.StringVar(&r.LeaseNamespace, "lease-namespace", r.LeaseNamespace, "the `namespace` of the lease (default: that of the pod or of the kubeconfig)")
}

func (f *flags) defineServing(set *pflag.FlagSet) {
	set.Var(&livenessFlag{health: &f.settings.Health}, "liveness", "where to serve the probes, such as http://0.0.0.0:8080/healthz or 0.0.0.0:8080 (default: nowhere)")
	set.Var((*listenAddress)(&f.settings.Metrics.Address), "metrics", "where to serve metrics for Prometheus, such as 0.0.0.0:9090 (default: nowhere)")
	set.BoolVar(&f.settings.Metrics.Secure, "metrics-secure", false, "serve the metrics by HTTPS, and only to whom the cluster allows it")
}

func (f *flags) defineWork(set *pflag.FlagSet) {
	e := &f.settings.Execution
	set.IntVar(&e.Workers, "workers", e.Workers, "how many objects are handled at the same time")
	set.DurationVar(&e.GracePeriod, "grace-period", e.GracePeriod, "how long running handlers may go on when the operator stops")
}

// complete makes settings of the parsed flags and of the environment, and finds the
// mistakes in them.
func (f *flags) complete(set *pflag.FlagSet, lookup func(string) string) error {
	if err := applyEnvironment(set, lookup); err != nil {
		return err
	}
	f.connection.complete(set)
	f.settings.Scope.Namespaces = splitNamespaces(f.scope.namespaces)
	f.settings.Peering.Mandatory = set.Changed("peering")
	if f.dev {
		f.settings.Peering.Priority = settings.DevelopmentPriority
	}
	if err := f.settings.Validate(); err != nil {
		return &usageError{err}
	}
	return f.logging.complete(set)
}

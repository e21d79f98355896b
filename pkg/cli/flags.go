package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// flags holds the flags of an operator. Flags for settings write to the settings directly.
type flags struct {
	settings   settings.Settings
	scope      scope
	dev        bool
	connection connection
	logging    logFlags
	// base changes the settings to those of a file, which flags take precedence over. Nil for none.
	base func(*settings.Settings) error
}

func newFlags() *flags {
	f := &flags{settings: settings.Default()}
	f.settings.Replicas.LeaseName = "" // depends on the name of the operator
	return f
}

// define defines the flags in the order of the help.
func (f *flags) define(set *pflag.FlagSet) {
	set.SortFlags = false
	defineGroup(set, "Scope", func(set *pflag.FlagSet) {
		set.StringArrayVarP(&f.scope.namespaces, "namespace", "n", nil, "serve this `namespace`, or the namespaces that match a pattern such as \"team-*,!team-x\"; can be repeated")
		set.BoolVarP(&f.scope.all, "all-namespaces", "A", false, "serve all namespaces (the default)")
	})
	defineGroup(set, "Peering", func(set *pflag.FlagSet) {
		p := &f.settings.Peering
		set.StringVarP(&p.Name, "peering", "P", p.Name, "the `name` of the peering object; if you set it, the operator pauses while the object does not exist")
		set.IntVarP(&p.Priority, "priority", "p", p.Priority, "the priority among the operators of the peering; the operator with the highest priority is active")
		set.BoolVar(&f.dev, "dev", false, "pause a deployed operator: sets the priority 666, whatever --priority says")
		set.BoolVar(&p.Standalone, "standalone", p.Standalone, "ignore other operators")
	})
	defineGroup(set, "Replicas", func(set *pflag.FlagSet) {
		r := &f.settings.Replicas
		set.BoolVar(&r.LeaderElection, "leader-elect", r.LeaderElection, "elect a leader among the replicas; the others stand by")
		set.IntVar(&r.Shards, "shards", r.Shards, "divide the objects into this `number` of shards, and handle those of some of them; the other replicas handle the others")
		set.StringVar((*string)(&r.ShardKey), "shard-key", "", "what decides which shard an object is in: uid (the default) or namespace")
		set.StringVar(&r.LeaseName, "lease-name", r.LeaseName, "the `name` of the lease that the leader holds (default: settings.Name, or "+settings.DefaultLeaseName+")")
		set.StringVar(&r.LeaseNamespace, "lease-namespace", r.LeaseNamespace, "the `namespace` of the lease (default: the namespace of the pod or of the kubeconfig)")
	})
	defineGroup(set, "Health and metrics", func(set *pflag.FlagSet) {
		set.VarP(&livenessFlag{health: &f.settings.Health}, "liveness", "L", "serve health probes, for example at http://0.0.0.0:8080/healthz or 0.0.0.0:8080")
		set.Var((*listenAddress)(&f.settings.Metrics.Address), "metrics", "serve metrics for Prometheus, for example at 0.0.0.0:9090")
		set.BoolVar(&f.settings.Metrics.Secure, "metrics-secure", false, "serve metrics over HTTPS, and only to clients that the cluster authorizes")
	})
	defineGroup(set, "Page", func(set *pflag.FlagSet) {
		set.Var((*listenAddress)(&f.settings.Page.Address), "page", "serve the page of the objects over HTTPS, to people whom the cluster authorizes, for example at :8444")
	})
	defineGroup(set, "Execution", func(set *pflag.FlagSet) {
		e := &f.settings.Execution
		set.IntVar(&e.Workers, "workers", e.Workers, "the maximum number of objects that the operator itself works on at the same time; running handlers do not count")
		set.DurationVar(&e.GracePeriod, "grace-period", e.GracePeriod, "how long running handlers may continue when the operator stops")
	})
	defineGroup(set, "Logging", f.logging.define)
	defineGroup(set, "Recording", func(set *pflag.FlagSet) {
		r := &f.settings.Recording
		set.StringVar(&r.File, "record", "", "record what the operator sees and decides in this `file`, with hashes in place of values, for tests of other handlers")
		set.StringSliceVar(&r.Fields, "record-field", nil, "a `field` whose values stay readable in the recording, such as spec.size; can be repeated")
		set.StringVar(&f.settings.Permissions.LearnFile, "learn", "", "write the roles that the operator needs to this `file`: what is derived from its handlers, and what its requests use; a lower bound")
	})
	defineGroup(set, "Connection", f.connection.define)
}

// complete applies the environment, completes the settings, and returns the mistakes in
// them.
func (f *flags) complete(set *pflag.FlagSet, lookup func(string) string) error {
	if err := applyEnvironment(set, "run", lookup); err != nil {
		return err
	}
	if err := f.rebase(set); err != nil {
		return err
	}
	f.connection.complete(set)
	if f.base == nil || f.scope.all || len(f.scope.namespaces) > 0 {
		f.settings.Scope.Namespaces = splitNamespaces(f.scope.namespaces)
	}
	if set.Changed("peering") {
		f.settings.Peering.Mandatory = true
	}
	if f.dev {
		f.settings.Peering.Priority = settings.DevelopmentPriority
	}
	if err := f.settings.Validate(); err != nil {
		return &usageError{err}
	}
	return f.logging.complete(set)
}

// rebase changes the settings to those of the file, and sets the flags that have a value again.
func (f *flags) rebase(set *pflag.FlagSet) error {
	if f.base == nil {
		return nil
	}
	given := map[string]string{}
	lists := map[string][]string{}
	set.Visit(func(flag *pflag.Flag) {
		given[flag.Name] = flag.Value.String()
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			lists[flag.Name] = list.GetSlice()
		}
	})
	if err := f.base(&f.settings); err != nil {
		return err
	}
	var failed error
	set.Visit(func(flag *pflag.Flag) {
		if failed != nil {
			return
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			failed = list.Replace(lists[flag.Name])
			return
		}
		if value := given[flag.Name]; value != "" || flag.Value.Type() == "string" {
			failed = flag.Value.Set(value)
		}
	})
	return failed
}

// scope holds the flags that select namespaces.
type scope struct {
	all        bool // also the default
	namespaces []string
}

// splitNamespaces splits lists of names at commas. It does not split patterns, in which
// commas separate globs.
func splitNamespaces(given []string) []string {
	var namespaces []string
	for _, value := range given {
		if selector.IsPattern(strings.ReplaceAll(value, ",", "")) {
			namespaces = append(namespaces, value)
		} else {
			namespaces = append(namespaces, strings.Split(value, ",")...)
		}
	}
	return namespaces
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kopf-go/kopf/pkg/kopf/selector"
	"github.com/kopf-go/kopf/pkg/kopf/settings"
)

// Flags are the parsed command line of an operator.
type Flags struct {
	AllNamespaces bool     // the default too
	Namespaces    []string // those to watch; empty: all
	Quiet         bool     // log errors only
	Verbose       bool     // log what the operator decides
	Debug         bool     // log the requests to the cluster too, but not what is in them
	Kubeconfig    string   // the file; empty: as kubectl finds it
	Context       string   // of the kubeconfig; empty: its current one
	Peering       string   // the peering object, which must be there; empty: the default one, if it is there
	Priority      int      // among the peers
	Dev           bool     // the priority of an operator under development
	Standalone    bool     // no peers are looked for
}

// Parse reads the arguments, without the program's name. It returns
// pflag.ErrHelp when it was asked for help, and has written that to the writer.
func Parse(program string, arguments []string, out io.Writer) (Flags, error) {
	var f Flags
	set := pflag.NewFlagSet(program, pflag.ContinueOnError)
	set.SetOutput(out)
	set.Usage = func() {
		_, _ = fmt.Fprintf(out, "%s is a Kubernetes operator. It runs until it is interrupted.\n\nFlags:\n%s", program, set.FlagUsages())
	}
	f.define(set)
	if err := set.Parse(arguments); err != nil {
		return f, err
	}
	f.Namespaces = separated(f.Namespaces)
	return f, f.validate(set)
}

// separated are the names of which several were given at once. In a pattern the
// comma has a meaning of its own.
func separated(given []string) []string {
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

func (f *Flags) define(set *pflag.FlagSet) {
	set.SortFlags = false
	set.BoolVarP(&f.AllNamespaces, "all-namespaces", "A", false, "watch all namespaces (the default)")
	set.StringArrayVarP(&f.Namespaces, "namespace", "n", nil, "watch this namespace, or those that fit a pattern such as \"team-*,!team-x\"; can be repeated")
	set.BoolVarP(&f.Verbose, "verbose", "v", false, "log more: what the operator decides")
	set.BoolVarP(&f.Debug, "debug", "d", false, "log everything: the requests to the cluster too, but not what is in them")
	set.BoolVarP(&f.Quiet, "quiet", "q", false, "log only errors")
	set.StringVar(&f.Peering, "peering", "", "the name of the peering object, without which the operator pauses (default: \"default\", if it is there)")
	set.IntVarP(&f.Priority, "priority", "p", 0, "the priority among the operators of the peering: all but the highest one pause")
	set.BoolVar(&f.Dev, "dev", false, fmt.Sprintf("be active instead of a deployed operator: the priority %d", settings.DevelopmentPriority))
	set.BoolVar(&f.Standalone, "standalone", false, "be active whatever other operators do")
	set.StringVar(&f.Kubeconfig, "kubeconfig", "", "the kubeconfig file (default: as kubectl does, or the pod's service account)")
	set.StringVar(&f.Context, "context", "", "the context of the kubeconfig to use (default: its current one)")
}

func (f Flags) validate(set *pflag.FlagSet) error {
	switch {
	case set.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: this command takes flags only", set.Arg(0))
	case set.Changed("namespace") && (len(f.Namespaces) == 0 || slices.Contains(f.Namespaces, "")):
		// It is more likely a variable that a script has not set than a wish to
		// watch everything.
		return errors.New("--namespace is empty: give a name, or --all-namespaces")
	case f.AllNamespaces && len(f.Namespaces) > 0:
		return errors.New("--all-namespaces and --namespace exclude each other")
	case f.Dev && set.Changed("priority"):
		return errors.New("--dev is a priority of its own: it excludes --priority")
	case f.Standalone && (f.Peering != "" || f.Dev || set.Changed("priority")):
		return errors.New("--standalone excludes --peering, --priority and --dev: there are no peers")
	case f.Quiet && (f.Verbose || f.Debug):
		return errors.New("--quiet excludes --verbose and --debug")
	}
	return nil
}

// peering is what the flags say about other operators.
func (f Flags) peering() settings.Peering {
	p := settings.Peering{Name: f.Peering, Mandatory: f.Peering != "", Priority: f.Priority, Standalone: f.Standalone}
	if f.Dev {
		p.Priority = settings.DevelopmentPriority
	}
	return p
}

// Config finds the cluster as kubectl does, or by the service account of the pod
// where there is no kubeconfig. It does not connect.
func (f Flags) Config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.Context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster to connect to: set KUBECONFIG or use --kubeconfig: %w", err)
	}
	return config, nil
}

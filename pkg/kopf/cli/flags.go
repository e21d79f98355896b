package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Flags are the parsed command line of an operator.
type Flags struct {
	AllNamespaces bool
	Namespaces    []string
	Quiet         bool
	Verbose       bool
	Debug         bool
	Kubeconfig    string
	Context       string
}

// Parse reads the arguments, without the program's name. Help is written to the
// given writer, and is pflag.ErrHelp.
func Parse(program string, arguments []string, out io.Writer) (Flags, error) {
	var f Flags
	set := pflag.NewFlagSet(program, pflag.ContinueOnError)
	set.SetOutput(out)
	set.SortFlags = false
	set.Usage = func() {
		_, _ = fmt.Fprintf(out, "%s is a Kubernetes operator. It runs until it is interrupted.\n\nFlags:\n%s", program, set.FlagUsages())
	}
	set.BoolVarP(&f.AllNamespaces, "all-namespaces", "A", false, "watch all namespaces (the default)")
	set.StringSliceVarP(&f.Namespaces, "namespace", "n", nil, "watch this namespace; can be repeated")
	set.BoolVarP(&f.Verbose, "verbose", "v", false, "log more: what the operator decides")
	set.BoolVarP(&f.Debug, "debug", "d", false, "log everything, the requests to the cluster included")
	set.BoolVarP(&f.Quiet, "quiet", "q", false, "log only errors")
	set.StringVar(&f.Kubeconfig, "kubeconfig", "", "the kubeconfig file (default: as kubectl does, or the pod's service account)")
	set.StringVar(&f.Context, "context", "", "the context of the kubeconfig to use (default: its current one)")
	if err := set.Parse(arguments); err != nil {
		return f, err
	}
	return f, f.validate(set.Args())
}

func (f Flags) validate(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q: this command takes flags only", rest[0])
	case f.AllNamespaces && len(f.Namespaces) > 0:
		return errors.New("--all-namespaces and --namespace exclude each other")
	case f.Quiet && (f.Verbose || f.Debug):
		return errors.New("--quiet excludes --verbose and --debug")
	}
	return nil
}

// Config finds the cluster as kubectl does, and the service account of the pod
// where there is no kubeconfig.
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

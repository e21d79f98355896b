package cli

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/cli/launch"
)

// newRunCommand returns the command that builds packages and runs them as an operator. It
// has the flags of an operator, so that it finds mistakes before it builds anything.
func newRunCommand(start launch.StartCluster) *cobra.Command {
	flags := newFlags()
	var cluster clusterFlags
	var further []string
	command := &cobra.Command{
		Use:   "run PACKAGE... [flags] [-- additional flags]",
		Short: "Build and run packages of handlers as an operator",
		Long: "Build packages of handlers and run them as an operator until it is interrupted.\n\n" +
			"A PACKAGE is a directory or an import path, as for the go command. It is either a program\n" +
			"that calls kopf.Main, or a package that declares handlers when it is imported, in a\n" +
			"function init. The flags are those of the operator. Put additional flags of your own\n" +
			"program after --.",
		Example: "  kopf run ./handlers --verbose\n  kopf run ./pods ./nodes -n default --dev\n  kopf run ./handlers --with-cluster --samples config/samples",
	}
	command.Args = func(_ *cobra.Command, arguments []string) error {
		if dash := command.ArgsLenAtDash(); dash >= 0 {
			further = arguments[dash:]
			arguments = arguments[:dash]
		}
		if len(arguments) == 0 {
			return usageErrorf("no package is given: use kopf run ./handlers")
		}
		return nil
	}
	command.RunE = func(_ *cobra.Command, arguments []string) error {
		packages := arguments[:len(arguments)-len(further)]
		given := append(formatFlags(command.Flags()), further...) // the program reads the environment itself
		if err := flags.complete(command.Flags(), environment); err != nil {
			return err
		}
		if err := cluster.check(flags.connection.given); err != nil {
			return err
		}
		return explainPackage(buildAndRun(command, packages, given, cluster.starter(start), cluster.definitionsOf(packages)), "run", packages)
	}
	flags.define(command.Flags())
	cluster.define(command.Flags())
	return command
}

// buildAndRun builds packages, and runs the program with the arguments: on a cluster that start
// starts, if it is not nil.
func buildAndRun(command *cobra.Command, packages, arguments []string, start launch.StartCluster, definitions []string) (err error) {
	dir, err := os.MkdirTemp("", "kopf-run-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the files are temporary
	log := command.ErrOrStderr()
	program, err := launch.Build(command.Context(), packages, dir, log)
	if err := cmp.Or(err, command.Context().Err()); err != nil {
		return err
	}
	of, stop, err := launch.Connection(command.Context(), start, definitions, log)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, stop()) }()
	code, err := launch.Run(program, append(of, arguments...), launch.CalledBy(command, packages), command.OutOrStdout(), log)
	if err == nil && code != ExitOK {
		err = &exitError{code: code}
	}
	return err
}

// formatFlags returns the flags of the command line as arguments for another one.
func formatFlags(set *pflag.FlagSet) []string {
	var arguments []string
	set.Visit(func(flag *pflag.Flag) {
		if slices.Contains(clusterFlagNames, flag.Name) {
			return
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			arguments = append(arguments, "--"+flag.Name+"="+value)
		}
	})
	return arguments
}

// newClusterCommand returns the command that starts a cluster without an operator.
func newClusterCommand(start launch.StartCluster) *cobra.Command {
	var cluster clusterFlags
	command := &cobra.Command{
		Use:   "cluster",
		Short: "Start a cluster for development, until it is interrupted",
		Long: "Start an API server with its etcd on this machine, and install resource definitions. The\n" +
			"cluster has no nodes. It ends with the command, which removes its files. Operators can be\n" +
			"started and stopped on it meanwhile: the command prints the KUBECONFIG for them, and for\n" +
			"kubectl.",
		Example: "  kopf cluster\n  kopf cluster --crds config/crd/bases",
		Args:    rejectArguments,
	}
	command.RunE = func(*cobra.Command, []string) error {
		ctx := command.Context()
		_, stop, err := launch.Connection(ctx, start, cluster.definitionsOf(nil), command.ErrOrStderr())
		if err != nil {
			return err
		}
		<-ctx.Done()
		return stop()
	}
	command.Flags().StringSliceVar(&cluster.definitions, definitionsFlag, nil, definitionsUsage+")")
	command.Flags().Lookup(definitionsFlag).Annotations = map[string][]string{withoutVariable: nil}
	return command
}

// definitionsUsage describes the flag, without the end of its last sentence.
const definitionsUsage = "a `file` or folder of resource definitions to install, with all folders below; can be repeated (default: crd.yaml, crds.yaml, and the folders crd, crds, and config/crd, in the current folder"

// clusterFlags contains the flags of kopf run for a separate cluster.
type clusterFlags struct {
	wanted      bool
	definitions []string
	samples     []string
}

// The flags. --cluster is taken: as for kubectl, it names a cluster of the kubeconfig.
const (
	withClusterFlag = "with-cluster"
	definitionsFlag = "crds"
	samplesFlag     = "samples"
)

// clusterFlagNames are the flags that the operator does not get.
var clusterFlagNames = []string{withClusterFlag, definitionsFlag, samplesFlag}

// define defines the flags. They have no environment variables: who sets one for a session would
// start clusters by accident.
func (c *clusterFlags) define(set *pflag.FlagSet) {
	defineGroup(set, "Cluster", func(set *pflag.FlagSet) {
		set.BoolVar(&c.wanted, withClusterFlag, false, "start a cluster for the operator, with an API server but no nodes, and remove it in the end")
		set.StringSliceVar(&c.definitions, definitionsFlag, nil, "with --"+withClusterFlag+": "+definitionsUsage+" and in those of the packages)")
		set.StringSliceVar(&c.samples, samplesFlag, nil, "with --"+withClusterFlag+": a `file` or folder of objects to create before the operator starts; can be repeated")
	})
	for _, name := range clusterFlagNames {
		set.Lookup(name).Annotations[withoutVariable] = nil
	}
}

// definitionsOf returns where the resource definitions are: the given places, or the usual ones.
func (c *clusterFlags) definitionsOf(packages []string) []string {
	if len(c.definitions) > 0 {
		return c.definitions
	}
	return launch.Definitions(append([]string{"."}, packages...)...)
}

// starter returns the function that starts the cluster, or nil if none is wanted.
func (c *clusterFlags) starter(start launch.StartCluster) launch.StartCluster {
	switch {
	case !c.wanted:
		return nil
	case len(c.samples) > 0:
		return launch.WithSamples(start, c.samples)
	default:
		return start
	}
}

// check returns what is wrong with the flags. The others are those of the connection.
func (c *clusterFlags) check(others []string) error {
	switch {
	case !c.wanted && len(c.definitions) > 0:
		return usageErrorf("--%s is for --%s: nothing is installed in other clusters", definitionsFlag, withClusterFlag)
	case !c.wanted && len(c.samples) > 0:
		return usageErrorf("--%s is for --%s: nothing is created in other clusters", samplesFlag, withClusterFlag)
	case c.wanted && len(others) > 0:
		return usageErrorf("--%s cannot be combined with %s: the operator connects to the cluster that is started for it", withClusterFlag, strings.Join(others, ", "))
	default:
		return nil
	}
}

package cli

import (
	"cmp"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/cli/launch"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Serving is what the command kopf does with files that declare handlers in any language. It is given, because
// the programs of operators do not need it.
type Serving interface {
	// ApplySettings changes settings to those of files.
	ApplySettings(files []string, s *settings.Settings) error
	// Variables returns the names of the variables of the operator that the programs and workers of files get.
	Variables(files []string) ([]string, error)
	// Run runs the operator of files until the context is done.
	Run(ctx context.Context, files []string, in Invocation, how Serve) error
	// Commands returns the commands that answer questions about the operator of files, and a function that
	// ends what they need.
	Commands(ctx context.Context, files []string) ([]*cobra.Command, func() error, error)
	// CheckWorker tests a worker, and writes a report. Its error says that the worker does not conform.
	CheckWorker(ctx context.Context, command []string, out, log io.Writer) error
}

// Serve is how files are served.
type Serve struct {
	// Watch begins again when the files change.
	Watch bool
	// Metacontroller also runs the controllers of Metacontroller in the cluster, and begins again when they change.
	Metacontroller bool
}

// newConformanceCommand returns the command that tests workers.
func newConformanceCommand(serving Serving) *cobra.Command {
	return &cobra.Command{
		Use:   "conformance -- COMMAND...",
		Short: "Test a worker of kopf serve in any language",
		Long: "Start a worker, and test that it follows the protocol of kopf serve. Checks that need handlers with known\n" +
			"ids are left out if the worker does not declare them; the documentation of the protocol lists the ids.\n" +
			"The exit code is 1 if a check fails.",
		Example: "  kopf conformance -- python3 kopf.py conformance.py",
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				return usageErrorf("no worker is given: use kopf conformance -- python3 worker.py")
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			err := serving.CheckWorker(command.Context(), arguments, command.OutOrStdout(), command.ErrOrStderr())
			if err != nil {
				return &exitError{ExitError, err.Error()}
			}
			return nil
		},
	}
}

// watchFlag is the flag that reloads files. It has no environment variable: it is for development.
const watchFlag = "watch"

// metacontrollerFlag is the flag that runs the controllers of Metacontroller in the cluster.
const metacontrollerFlag = "metacontroller"

// newServeCommand returns the command that runs files as an operator.
func newServeCommand(serving Serving, start launch.StartCluster) *cobra.Command {
	flags := newFlags()
	var cluster clusterFlags
	var how Serve
	command := &cobra.Command{
		Use:   "serve FILE... [flags]",
		Short: "Run programs, workers, and services as the handlers of an operator",
		Long: "Run an operator whose handlers are programs, long-lived workers, or HTTP services in any language,\n" +
			"until it is interrupted. A FILE declares them, and says which objects they are for.\n\n" +
			"The flags are those of an operator. They take precedence over the settings of the files.",
		Example:           "  kopf serve operator.yaml --verbose\n  kopf serve operator.yaml --with-cluster --crds crd.yaml --watch\n  kopf serve --metacontroller",
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	command.RunE = func(_ *cobra.Command, files []string) (err error) {
		if len(files) > 0 {
			flags.base = func(s *settings.Settings) error { return serving.ApplySettings(files, s) }
		}
		in, err := flags.invocation(command)
		if err != nil {
			return err
		}
		if len(files) == 0 && !how.Metacontroller {
			return usageErrorf("no file is given: use kopf serve operator.yaml") // variables have set the flag by now
		}
		if err := cluster.check(flags.connection.given); err != nil {
			return err
		}
		of, stop, err := launch.Connection(command.Context(), cluster.starter(start), cluster.definitionsOf(foldersOf(files)), command.ErrOrStderr())
		if err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, stop()) }()
		if err := command.Flags().Parse(of); err != nil {
			return err
		}
		in.connection = flags.connection
		return flags.logged(serving.Run(command.Context(), files, in, how), in.Logger)
	}
	flags.define(command.Flags())
	defineGroup(command.Flags(), "Handlers", func(set *pflag.FlagSet) {
		set.BoolVar(&how.Metacontroller, metacontrollerFlag, false, "also run the controllers of Metacontroller in the cluster, and begin again when they change")
	})
	defineGroup(command.Flags(), "Development", func(set *pflag.FlagSet) {
		set.BoolVar(&how.Watch, watchFlag, false, "begin again when the files or the programs in their folders change, but never in the middle of a call")
	})
	command.Flags().Lookup(watchFlag).Annotations[withoutVariable] = nil
	cluster.define(command.Flags())
	return command
}

// foldersOf returns the folders of files.
func foldersOf(files []string) []string {
	var folders []string
	for _, file := range files {
		if folder := filepath.Dir(file); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// isHandlerFile reports whether an argument is a file of kopf serve, and not a package.
func isHandlerFile(argument string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(argument))
}

// runServed runs a command about the operator of files, in this process.
func runServed(command *cobra.Command, serving Serving, name string, files, arguments []string) (err error) {
	commands, end, err := serving.Commands(command.Context(), files)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, end()) }()
	variables, err := serving.Variables(files)
	if err != nil {
		return err
	}
	root := &cobra.Command{Use: command.Root().Name(), SilenceErrors: true, SilenceUsage: true}
	root.Annotations = map[string]string{
		launch.CalledAsAnnotation:  launch.PatternFor(command, files),
		launch.VariablesAnnotation: strings.Join(variables, " "),
	}
	root.AddCommand(commands...)
	root.SetOut(command.OutOrStdout())
	root.SetErr(command.ErrOrStderr())
	root.SetArgs(append([]string{name}, arguments...))
	return root.ExecuteContext(command.Context())
}

package cli

import (
	"context"
	"os"
	"slices"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/cli/logformat"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Invocation has the results of the command line.
type Invocation struct {
	// Settings are the default settings, changed by the flags.
	Settings settings.Settings
	// Logger writes to standard error, as the flags configure it.
	Logger logr.Logger

	connection connection
	flags      *flags
	set        *pflag.FlagSet // of the flags
}

// Overridden returns the flags that have no effect on an operator with the settings, because its program has changed
// them.
func (in Invocation) Overridden(s settings.Settings) (names []string) {
	given := map[string]string{}
	in.set.Visit(func(flag *pflag.Flag) { given[flag.Name] = flag.Value.String() })
	ours := in.flags.settings
	in.flags.settings = s // which the flags show
	in.set.Visit(func(flag *pflag.Flag) {
		isOther := flag.Value.String() != given[flag.Name]
		switch flag.Name {
		case "namespace", "all-namespaces": // they show what was given
			isOther = !slices.Equal(s.Scope.Namespaces, ours.Scope.Namespaces)
		case "liveness":
			isOther = s.Health.Address != ours.Health.Address
		}
		if isOther {
			names = append(names, "--"+flag.Name)
		}
	})
	in.flags.settings = ours
	return names
}

// newOperatorCommand returns the command of an operator.
func newOperatorCommand(name string, run func(context.Context, Invocation) error) *cobra.Command {
	flags := newFlags()
	command := &cobra.Command{
		Use:   name + " [flags]",
		Short: name + " is a Kubernetes operator. It runs until it is interrupted.",
		Args:  rejectArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			in, err := flags.invocation(command)
			if err != nil {
				return err
			}
			return flags.logged(run(command.Context(), in), in.Logger)
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	flags.define(command.Flags())
	return command
}

// invocation completes the flags, and installs the logger.
func (f *flags) invocation(command *cobra.Command) (Invocation, error) {
	if err := f.complete(command.Flags(), environment); err != nil {
		return Invocation{}, err
	}
	logger := f.logging.newLogger(command.ErrOrStderr())
	f.logging.installLogger(logger)
	for _, name := range unknownVariables(os.Environ()) {
		logger.Info("An environment variable is unknown and has no effect.", "variable", name)
	}
	if replicas := &f.settings.Replicas; replicas.LeaseNamespace == "" {
		// That of the kubeconfig or of the pod. Errors in the kubeconfig are reported when it connects.
		if namespace, _, err := f.connection.clientConfig().Namespace(); err == nil {
			replicas.LeaseNamespace = namespace
		}
	}
	return Invocation{f.settings, logger, f.connection, f, command.Flags()}, nil
}

// logged returns the error of an operator: one with a JSON log logs it.
func (f *flags) logged(err error, logger logr.Logger) error {
	if err != nil && logformat.Format(f.logging.format) == logformat.JSON {
		return &loggedError{err, logger}
	}
	return err
}

// rejectArguments returns an error if there are arguments. It names the first one.
func rejectArguments(_ *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return usageErrorf("unexpected argument %q: this command takes flags only", arguments[0])
	}
	return nil
}

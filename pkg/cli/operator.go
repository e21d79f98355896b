package cli

import (
	"context"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

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
}

// newOperatorCommand returns the command of an operator.
func newOperatorCommand(name string, run func(context.Context, Invocation) error) *cobra.Command {
	flags := newFlags()
	command := &cobra.Command{
		Use:   name + " [flags]",
		Short: name + " is a Kubernetes operator. It runs until it is interrupted.",
		Args:  rejectArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := flags.complete(command.Flags(), environment); err != nil {
				return err
			}
			logger := flags.logging.newLogger(command.ErrOrStderr())
			flags.logging.installLogger(logger)
			for _, name := range unknownVariables(os.Environ()) {
				logger.Info("An environment variable is unknown and has no effect.", "variable", name)
			}
			if replicas := &flags.settings.Replicas; replicas.LeaseNamespace == "" {
				// That of the kubeconfig or of the pod. Errors in the kubeconfig are reported when it connects.
				if namespace, _, err := flags.connection.clientConfig().Namespace(); err == nil {
					replicas.LeaseNamespace = namespace
				}
			}
			err := run(command.Context(), Invocation{flags.settings, logger, flags.connection})
			if err != nil && logformat.Format(flags.logging.format) == logformat.JSON {
				return &loggedError{err, logger}
			}
			return err
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	flags.define(command.Flags())
	return command
}

// rejectArguments returns an error if there are arguments. It names the first one.
func rejectArguments(_ *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return usageErrorf("unexpected argument %q: this command takes flags only", arguments[0])
	}
	return nil
}

package cli

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/kopf-go/kopf/pkg/cli/logformat"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Invocation is what the command line asks for.
type Invocation struct {
	// Settings are the default ones with what the flags say.
	Settings settings.Settings
	// Logger writes to the standard error, as the flags say.
	Logger logr.Logger

	connection connection
}

// newOperator is the command of an operator's program.
func newOperator(name string, run func(context.Context, Invocation) error) *cobra.Command {
	flags := newFlags()
	command := &cobra.Command{
		Use:   name + " [flags]",
		Short: name + " is a Kubernetes operator. It runs until it is interrupted.",
		Args:  noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := flags.complete(command.Flags(), environment); err != nil {
				return err
			}
			logger := flags.logging.logger(command.ErrOrStderr())
			flags.logging.share(logger)
			flags.connection.place(&flags.settings.Replicas)
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

// noArguments refuses arguments, and names the first one.
func noArguments(_ *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return misused("unexpected argument %q: this command takes flags only", arguments[0])
	}
	return nil
}

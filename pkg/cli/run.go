package cli

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/cli/launch"
)

// newRunCommand returns the command that builds packages and runs them as an operator. It
// has the flags of an operator, so that it finds mistakes before it builds anything.
func newRunCommand() *cobra.Command {
	flags := newFlags()
	command := &cobra.Command{
		Use:   "run PACKAGE... [flags] [-- additional flags]",
		Short: "Build and run packages of handlers as an operator",
		Long: "Build packages of handlers and run them as an operator until it is interrupted.\n\n" +
			"A PACKAGE is a directory or an import path, as for the go command. It is either a program\n" +
			"that calls kopf.Main, or a package that declares handlers when it is imported, in a\n" +
			"function init. The flags are those of the operator. Put additional flags of your own\n" +
			"program after --.",
		Example: "  kopf run ./handlers --verbose\n  kopf run ./pods ./nodes -n default --dev",
	}
	var further []string
	command.Args = func(_ *cobra.Command, arguments []string) error {
		if dash := command.ArgsLenAtDash(); dash >= 0 {
			arguments, further = arguments[:dash], arguments[dash:]
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
		return buildAndRun(command, packages, given)
	}
	flags.define(command.Flags())
	return command
}

func buildAndRun(command *cobra.Command, packages, arguments []string) error {
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
	code, err := launch.Run(program, arguments, command.OutOrStdout(), log)
	if err == nil && code != ExitOK {
		err = &exitError{code}
	}
	return err
}

// formatFlags returns the flags of the command line as arguments for another one.
func formatFlags(set *pflag.FlagSet) []string {
	var arguments []string
	set.Visit(func(flag *pflag.Flag) {
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

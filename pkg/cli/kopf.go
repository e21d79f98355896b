package cli

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// newKopfCommand is the command kopf.
func newKopfCommand() *cobra.Command {
	tool := &cobra.Command{
		Use:   "kopf",
		Short: "kopf runs Kubernetes operators that consist of handlers, and pauses them.",
	}
	tool.AddCommand(newRunCommand(), newFreezeCommand(), newResumeCommand(), newVersionCommand())
	return tool
}

// rejectUnknownCommand refuses what is none of the commands below.
func rejectUnknownCommand(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	command.SuggestionsMinimumDistance = 2
	if similar := command.SuggestionsFor(arguments[0]); len(similar) > 0 {
		return usageErrorf("unknown command %q: is it %s?", arguments[0], strings.Join(similar, " or "))
	}
	return usageErrorf("unknown command %q", arguments[0])
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this command, and of Go",
		Args:  rejectArguments,
		Run:   func(command *cobra.Command, _ []string) { command.Println(versionString()) },
	}
}

// versionString is that of the module which the program was built from.
func versionString() string {
	of := "(unknown)"
	if built, ok := debug.ReadBuildInfo(); ok && built.Main.Version != "" {
		of = built.Main.Version
	}
	return "kopf " + of + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}

package cli

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// newTool is the command kopf.
func newTool() *cobra.Command {
	tool := &cobra.Command{
		Use:   "kopf",
		Short: "kopf runs Kubernetes operators that consist of handlers, and pauses them.",
	}
	tool.AddCommand(newRun(), newFreeze(), newResume(), newVersion())
	return tool
}

// unknown refuses what is none of the commands below.
func unknown(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	command.SuggestionsMinimumDistance = 2
	if similar := command.SuggestionsFor(arguments[0]); len(similar) > 0 {
		return misused("unknown command %q: is it %s?", arguments[0], strings.Join(similar, " or "))
	}
	return misused("unknown command %q", arguments[0])
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this command, and of Go",
		Args:  noArguments,
		Run:   func(command *cobra.Command, _ []string) { command.Println(version()) },
	}
}

// version is that of the module which the program was built from.
func version() string {
	of := "(unknown)"
	if built, ok := debug.ReadBuildInfo(); ok && built.Main.Version != "" {
		of = built.Main.Version
	}
	return "kopf " + of + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}

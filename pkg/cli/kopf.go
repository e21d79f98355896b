package cli

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// newKopfCommand returns the command kopf.
func newKopfCommand() *cobra.Command {
	tool := &cobra.Command{
		Use:     "kopf",
		Short:   "kopf runs Kubernetes operators that are built from handlers, and pauses and resumes them.",
		Version: versionString(),
	}
	tool.SetVersionTemplate("{{.Version}}\n")
	tool.AddCommand(newRunCommand(), newFreezeCommand(), newResumeCommand(), newVersionCommand())
	return tool
}

// rejectUnknownCommand returns an error for an unknown subcommand, with similar ones.
func rejectUnknownCommand(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	command.SuggestionsMinimumDistance = 2
	if similar := command.SuggestionsFor(arguments[0]); len(similar) > 0 {
		return usageErrorf("unknown command %q: did you mean %s?", arguments[0], strings.Join(similar, " or "))
	}
	return usageErrorf("unknown command %q", arguments[0])
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of kopf and of Go",
		Args:  rejectArguments,
		Run:   func(command *cobra.Command, _ []string) { command.Println(versionString()) },
	}
}

// versionString returns the versions of this module and of Go.
func versionString() string {
	of := "(unknown)"
	if built, ok := debug.ReadBuildInfo(); ok && built.Main.Version != "" {
		of = built.Main.Version
	}
	return "kopf " + of + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}

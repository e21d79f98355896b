package launch

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kopf-go/kopf/pkg/inspect"
)

// CalledAsVariable is the environment variable by which the command kopf tells the program that it
// has built how a person calls its commands: see CalledAs.
const CalledAsVariable = "KOPF_CALLED_AS"

// CalledAsAnnotation is the annotation of a root command with the same for commands that kopf itself answers, for
// files of kopf serve.
const CalledAsAnnotation = "called as"

// VariablesAnnotation is the annotation of such a root command with the names of the variables that the programs and
// workers of the files get, separated by spaces.
const VariablesAnnotation = "variables"

// CalledAs returns how a person calls the commands of this program, such as "bin/manager COMMAND",
// or "kopf COMMAND ./handlers" if kopf has built it.
func CalledAs(command *cobra.Command) string {
	if pattern := GivenPattern(command); pattern != "" {
		return pattern
	}
	return pathOf(command) + " " + inspect.CommandPlaceholder
}

// GivenPattern returns how a person calls the commands, if kopf has said so; otherwise, nothing.
func GivenPattern(command *cobra.Command) string {
	if pattern := command.Root().Annotations[CalledAsAnnotation]; pattern != "" {
		return pattern
	}
	return os.Getenv(CalledAsVariable)
}

// PatternFor returns how a person calls the commands about packages or files.
func PatternFor(command *cobra.Command, arguments []string) string {
	return pathOf(command) + " " + inspect.CommandPlaceholder + " " + inspect.Quote(arguments...)
}

// CalledBy returns the environment of a program that a command of kopf has built from packages.
func CalledBy(command *cobra.Command, packages []string) []string {
	return []string{CalledAsVariable + "=" + PatternFor(command, packages)}
}

// pathOf returns the program and the commands above a command, as a shell needs them.
func pathOf(command *cobra.Command) string {
	root := command.Root()
	path := command.CommandPath()
	if parent := command.Parent(); parent != nil {
		path = parent.CommandPath()
	}
	if _, renamed := root.Annotations[cobra.CommandDisplayNameAnnotation]; renamed {
		return path
	}
	return programAs(os.Args[0], debug.ReadBuildInfo) + strings.TrimPrefix(path, root.CommandPath())
}

// programAs returns how a shell calls the program of a process: as it was called, or with go run,
// which removes the program afterwards.
func programAs(called string, build func() (*debug.BuildInfo, bool)) string {
	if !strings.Contains(filepath.ToSlash(called), "/go-build") {
		return inspect.Quote(called)
	}
	if info, ok := build(); ok && info.Path != "" && info.Path != "command-line-arguments" {
		return "go run " + info.Path
	}
	return "go run ."
}

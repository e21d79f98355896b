package cli

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kopf-go/kopf/pkg/cli/launch"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/internal/program"
)

// newKopfCommand returns the command kopf.
func newKopfCommand(start launch.StartCluster, serving Serving) *cobra.Command {
	tool := &cobra.Command{
		Use:     "kopf",
		Short:   "kopf runs Kubernetes operators that are built from handlers, and answers questions about them.",
		Version: versionString(),
	}
	if isPlugin(os.Args[0]) {
		tool.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kopf"}
	}
	tool.SetVersionTemplate("{{.Version}}\n")
	tool.AddCommand(newInitCommand(), newKubebuilderCommand(), newRunCommand(start), newServeCommand(serving, start), newConformanceCommand(serving), newClusterCommand(start), newFreezeCommand(), newResumeCommand(), newVersionCommand())
	for _, of := range Commands(nil) {
		tool.AddCommand(newBuiltCommand(of, serving))
	}
	return tool
}

// isPlugin reports whether kubectl has called the program.
func isPlugin(program string) bool {
	return strings.TrimSuffix(filepath.Base(program), ".exe") == "kubectl-kopf"
}

// newBuiltCommand returns a command that builds packages, and runs a command of the program. For files of kopf
// serve, it runs the command in this process.
func newBuiltCommand(of *cobra.Command, serving Serving) *cobra.Command {
	_, arguments, _ := strings.Cut(of.Use, " ")
	command := &cobra.Command{
		Use: of.Name() + " PACKAGE... " + arguments, Short: of.Short,
		Long: of.Long + "\n\nThe PACKAGES have the handlers, as for kopf run. The first argument is a package; further ones\n" +
			"begin with ./, ../, or /. See also: " + of.Name() + " PACKAGE --help.\n\n" +
			"In place of packages, you can name files of kopf serve, which end with .yaml, .yml, or .json.",
		Example:            strings.ReplaceAll(of.Example, "  "+of.Name(), "  "+of.Name()+" ./handlers"),
		DisableFlagParsing: true,
	}
	command.ValidArgsFunction = func(command *cobra.Command, arguments []string, word string) ([]string, cobra.ShellCompDirective) {
		return completeBuilt(command, of, arguments, word)
	}
	command.RunE = func(command *cobra.Command, arguments []string) error {
		switch {
		case len(arguments) == 0:
			return usageErrorf("no package is given: use kopf %s ./handlers", of.Name())
		case arguments[0] == "--help" || arguments[0] == "-h":
			return command.Help()
		case strings.HasPrefix(arguments[0], "-"):
			return usageErrorf("the first argument is %s: use kopf %s ./handlers, and then the flags", arguments[0], of.Name())
		}
		if isHandlerFile(arguments[0]) {
			files := 1
			for files < len(arguments) && isHandlerFile(arguments[files]) {
				files++
			}
			return runServed(command, serving, of.Name(), arguments[:files], arguments[files:])
		}
		packages := 1
		for packages < len(arguments) && isLocalPackage(arguments[packages]) {
			packages++
		}
		err := buildAndRun(command, arguments[:packages], append([]string{of.Name()}, arguments[packages:]...), nil, nil)
		return explainPackage(err, of.Name(), arguments)
	}
	return command
}

// explainPackage returns a better error if the first argument of a command is not a package: most
// likely, the package is missing, or it is a folder without ./ in front.
func explainPackage(err error, command string, arguments []string) error {
	var missing *launch.NotFoundError
	first := arguments[0]
	line := []string{"kopf", command}
	switch {
	case !errors.As(err, &missing) || isLocalPackage(first):
		return err
	case isFolder(first):
		line = append(append(line, "./"+filepath.ToSlash(first)), arguments[1:]...)
	case command == "run":
		return err
	default:
		line = append(append(line, "./handlers"), arguments...)
	}
	reason := ""
	if !strings.Contains(missing.Reason, " is not in std ") { // which says only that the name has no dot
		reason = ", says the go command: " + missing.Reason
	}
	return usageErrorf("the first argument of %s is a package, and %s is not a package%s; use, for example: %s", command, first, reason, inspect.Quote(line...))
}

// isFolder reports whether a path is a folder.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// completeBuilt completes the arguments of a command that builds packages, without building them: the
// objects are those of the cluster, whatever the handlers are for.
func completeBuilt(command, of *cobra.Command, arguments []string, word string) ([]string, cobra.ShellCompDirective) {
	packages := min(1, len(arguments))
	for packages < len(arguments) && isLocalPackage(arguments[packages]) {
		packages++
	}
	if packages == 0 || isLocalPackage(word) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	of.SetContext(command.Context())
	if err := of.ParseFlags(arguments[packages:]); err != nil {
		cobra.CompErrorln(err.Error())
		return nil, cobra.ShellCompDirectiveError
	}
	return of.ValidArgsFunction(of, of.Flags().Args(), word)
}

// isLocalPackage reports whether an argument can only be a directory.
func isLocalPackage(argument string) bool {
	return argument == "." || argument == ".." || strings.HasPrefix(argument, "./") || strings.HasPrefix(argument, "../") || strings.HasPrefix(argument, "/")
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

// newOperatorVersionCommand returns the command of an operator with this name that shows its version.
func newOperatorVersionCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the versions of the operator, of kopf, and of Go",
		Args:  rejectArguments,
		Run: func(command *cobra.Command, _ []string) {
			of, _ := program.Versions()
			command.Println(name + " " + cmp.Or(of, "(unknown)") + " " + versionString())
		},
	}
}

// versionString returns the versions of this module and of Go, and the platform.
func versionString() string {
	_, of := program.Versions()
	return "kopf " + cmp.Or(of, "(unknown)") + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}

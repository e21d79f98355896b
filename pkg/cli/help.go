package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/cli/launch"
	"github.com/kopf-go/kopf/pkg/inspect"
)

// helpWidth is the width of the help, in characters.
const helpWidth = 100

// prepareCommand sets the help and the errors of a command and its subcommands. The
// outputs of the command must be set before.
func prepareCommand(command *cobra.Command) {
	command.SilenceErrors = true
	command.SilenceUsage = true
	command.SetUsageFunc(writeUsage)
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	command.InitDefaultCompletionCmd()
	for _, parent := range append(command.Commands(), command) {
		if parent.HasSubCommands() && !parent.Runnable() {
			parent.Args = rejectUnknownCommand
			parent.RunE = func(parent *cobra.Command, _ []string) error { return parent.Help() }
		}
	}
}

// runsAnnotation marks a command that does something without a subcommand.
const runsAnnotation = "runs"

// groupAnnotation is the annotation of a flag with the title of its group.
const groupAnnotation = "group"

// defineGroup defines flags that the help shows together.
func defineGroup(set *pflag.FlagSet, title string, define func(*pflag.FlagSet)) {
	group := pflag.NewFlagSet(title, pflag.ContinueOnError)
	group.SortFlags = false
	define(group)
	group.VisitAll(func(flag *pflag.Flag) {
		flag.Annotations = map[string][]string{groupAnnotation: {title}}
		set.AddFlag(flag)
	})
}

// writeUsage writes the usage of a command, its subcommands, and its flags by groups, each
// with its environment variable.
func writeUsage(command *cobra.Command) error {
	out := command.OutOrStderr()
	path := calledAs(command)
	text := "Usage:\n  " + path + strings.TrimPrefix(command.UseLine(), command.CommandPath()) + "\n"
	if command.HasAvailableSubCommands() {
		text = "Usage:\n"
		if _, runs := command.Annotations[runsAnnotation]; runs {
			text += "  " + command.UseLine() + "\n"
		}
		text += "  " + command.CommandPath() + " COMMAND\n\nCommands:\n"
		for _, below := range command.Commands() {
			if below.IsAvailableCommand() {
				text += fmt.Sprintf("  %-*s %s\n", command.NamePadding(), below.Name(), below.Short)
			}
		}
	}
	if command.Example != "" {
		text += "\nExamples:\n" + withProgram(command.Example, command.Name(), path) + "\n"
	}
	_, err := io.WriteString(out, text+formatFlagGroups(command.Flags()))
	return err
}

// calledAs returns how a person calls the command: if kopf has built the program, by kopf, which runs
// the operator itself by its command run.
func calledAs(command *cobra.Command) string {
	pattern := launch.GivenPattern(command)
	name := "run"
	if pattern == "" {
		return command.CommandPath()
	}
	if command.HasParent() {
		name = command.Name()
	}
	return strings.Replace(pattern, inspect.CommandPlaceholder, name, 1)
}

// withProgram puts the program in front of a command that begins the lines of its examples.
func withProgram(examples, name, path string) string {
	lines := strings.Split(examples, "\n")
	for i, line := range lines {
		if rest, begins := strings.CutPrefix(line, "  "+name); begins && (rest == "" || rest[0] == ' ') {
			lines[i] = "  " + path + rest
		}
	}
	return strings.Join(lines, "\n")
}

// formatFlagGroups returns the flags by groups, each flag with its environment variable.
func formatFlagGroups(set *pflag.FlagSet) string {
	var groups []*pflag.FlagSet
	set.VisitAll(func(flag *pflag.Flag) {
		title := "Others"
		if given := flag.Annotations[groupAnnotation]; len(given) > 0 {
			title = given[0]
		}
		if len(groups) == 0 || groups[len(groups)-1].Name() != title {
			next := pflag.NewFlagSet(title, pflag.ContinueOnError)
			next.SortFlags = false
			groups = append(groups, next)
		}
		shown := *flag
		if name := environmentVariable(flag); name != "" {
			shown.Usage += " [" + name + "]"
		}
		groups[len(groups)-1].AddFlag(&shown)
	})
	var b strings.Builder
	for _, group := range groups {
		fmt.Fprintf(&b, "\n%s:\n%s", group.Name(), group.FlagUsagesWrapped(helpWidth))
	}
	if len(groups) > 1 {
		b.WriteString("\nYou can set each flag by the environment variable in brackets. Flags take precedence.\n")
	}
	return b.String()
}

// completionTimeout limits how long a shell waits.
const completionTimeout = 5 * time.Second

// completeArguments completes KIND/NAME from the cluster, and HANDLER from the program. A command that
// does not know the program completes all kinds.
func (q *question) completeArguments(command *cobra.Command, arguments []string, word string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
	defer cancel()
	if !strings.Contains(command.Use, "KIND") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	completer, err := q.completer(ctx, command.Flags())
	var words []string
	switch {
	case err != nil:
	case !strings.Contains(command.Use, "KIND/NAME"):
		words = completer.Kinds(word, "")
	default:
		words, err = completer.Complete(ctx, q.namespace, arguments, word, strings.Contains(command.Use, "HANDLER"))
	}
	switch {
	case err != nil:
		cobra.CompErrorln(err.Error())
		return nil, cobra.ShellCompDirectiveError
	case slices.ContainsFunc(words, func(word string) bool { return strings.HasSuffix(word, "/") }):
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	default:
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func (q *question) completer(ctx context.Context, set *pflag.FlagSet) (*inspect.Completer, error) {
	if err := q.complete(set); err != nil {
		return nil, err
	}
	if q.load == nil {
		config, err := q.config(ctx)
		if err != nil {
			return nil, err
		}
		return inspect.NewCompleter(ctx, config)
	}
	cluster, _, err := q.connect(ctx)
	if err != nil {
		return nil, err
	}
	return cluster.Completer(), nil
}

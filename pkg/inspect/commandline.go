package inspect

import (
	"regexp"
	"strings"

	"github.com/kopf-go/kopf/pkg/peering"
)

// CommandPlaceholder stands for the command in CommandLine.Pattern.
const CommandPlaceholder = "COMMAND"

// CommandLine is how a person calls the commands of the program, so that the commands in answers
// can be pasted into a shell. The zero value leaves the program out.
type CommandLine struct {
	// Pattern is the command line without arguments, such as "kopf COMMAND ./handlers".
	Pattern string
	// Flags select the cluster. kubectl has them, too.
	Flags []string
}

// Of returns the command line of a command of the program.
func (c CommandLine) Of(command, arguments string) string {
	if c.Pattern == "" {
		return command + " " + arguments
	}
	return c.withFlags(strings.Replace(c.Pattern, CommandPlaceholder, command, 1) + " " + arguments)
}

// Kubectl returns the command line of a command of kubectl.
func (c CommandLine) Kubectl(arguments string) string { return c.withFlags("kubectl " + arguments) }

// Resume returns the command line that ends the freeze of an identity.
func (c CommandLine) Resume(target peering.Target, identity string) string {
	words := []string{"kopf", "resume", "--id", identity, "--peering", target.Name}
	if target.Namespace != "" {
		words = append(words, "-n", target.Namespace)
	}
	return c.withFlags(Quote(words...))
}

func (c CommandLine) withFlags(line string) string {
	if len(c.Flags) == 0 {
		return line
	}
	return line + " " + Quote(c.Flags...)
}

// harmless are words that a shell passes on as they are.
var harmless = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// Quote joins words, in quotes where a shell needs them.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if !harmless.MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagRow matches a row about a flag in a document, without its meaning.
var flagRow = regexp.MustCompile("(?m)^\\| `--([a-z-]+)`(?:, `-(.)`)? \\| `(\\w+)` \\| .")

func TestTheDocumentationListsAllFlags(t *testing.T) {
	text, err := os.ReadFile("../../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	for title, command := range map[string]*cobra.Command{
		"Flags": newOperatorCommand("operator", nil), "kopf freeze": newFreezeCommand(), "kopf resume": newResumeCommand(),
	} {
		_, section, _ := strings.Cut(string(text), "# "+title+"\n")
		section, _, _ = strings.Cut(section, "\n#")
		var documented, defined []string
		for _, found := range flagRow.FindAllStringSubmatch(section, -1) {
			documented = append(documented, strings.Join(found[1:], " "))
		}
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			defined = append(defined, flag.Name+" "+flag.Shorthand+" "+environmentVariable(flag))
		})
		if !slices.Equal(documented, defined) {
			t.Errorf("%s: docs/command-line.md has\n%q, but the command has\n%q", title, documented, defined)
		}
	}
}

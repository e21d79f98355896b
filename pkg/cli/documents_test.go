package cli

import (
	"os"
	"path/filepath"
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

var (
	// documentedCommand matches a command kopf, or an example that is run with flags, in a
	// block of a document.
	documentedCommand = regexp.MustCompile(`(?m)^ *(?:\$ )?((?:kopf|go run \S+) .*)$`)
	// documentedArguments matches the arguments of a container in a manifest.
	documentedArguments = regexp.MustCompile(`args: \[(.*)\]`)
	// quoted matches the quotes around a value.
	quoted = regexp.MustCompile(`"([^" ]*) ?[^"]*"`)
)

func TestDocumentedCommandsAreAccepted(t *testing.T) {
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, path := range append(paths, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range documentedCommands(string(text)) {
			commands++
			if err := accept(t, strings.Fields(quoted.ReplaceAllString(command, "$1"))); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(path), command, err)
			}
		}
	}
	if commands < 5 {
		t.Errorf("found only %d commands", commands)
	}
}

// documentedCommands returns the commands in a document, without comments. Arguments in
// manifests count as those of an operator.
func documentedCommands(text string) []string {
	var found []string
	for _, match := range documentedCommand.FindAllStringSubmatch(text, -1) {
		command, _, _ := strings.Cut(match[1], " #")
		found = append(found, command)
	}
	for _, match := range documentedArguments.FindAllStringSubmatch(text, -1) {
		found = append(found, "operator . "+strings.ReplaceAll(match[1], ",", ""))
	}
	return found
}

// accept returns why the command line rejects the words. It runs nothing.
func accept(t *testing.T, words []string) error {
	t.Helper()
	command, arguments := newOperatorCommand("operator", nil), words[2:]
	switch {
	case words[0] == "go" && words[2] != "." && !strings.HasPrefix(words[2], "./examples/"):
		return nil // not an operator
	case words[0] == "go":
		arguments = words[3:]
		for _, of := range Commands(nil) {
			if len(arguments) > 0 && of.Name() == arguments[0] {
				command, arguments = of, arguments[1:]
			}
		}
	case words[0] == "kopf":
		found, rest, err := newKopfCommand(nil, nil).Find(words[1:])
		if err != nil {
			return err
		}
		command, arguments = found, rest
	}
	if err := command.ParseFlags(arguments); err != nil {
		return err
	}
	return command.ValidateArgs(command.Flags().Args())
}

func TestAccept(t *testing.T) {
	tests := map[string]struct {
		words string
		want  string
	}{
		"a flag of an operator":           {"operator . --leader-elect", ""},
		"an unknown flag of an operator":  {"operator . --lead", "unknown flag"},
		"an example with flags":           {"go run ./examples/06-peering --dev", ""},
		"an example with an unknown flag": {"go run ./examples/06-peering --develop", "unknown flag"},
		"a command of a program":          {"go run . explain shop/one -n default", ""},
		"a command with a wrong flag":     {"go run . explain shop/one --nam default", "unknown flag"},
		"a command":                       {"kopf freeze --lifetime 10m", ""},
		"a command with an unknown flag":  {"kopf resume --lifetime 10m", "unknown flag"},
		"a command without an argument":   {"kopf run --verbose", "no package is given"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := accept(t, strings.Fields(test.words))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// namedFlag matches a flag in the text of a document.
var namedFlag = regexp.MustCompile("`--([a-z-]+)[ =`]")

// foreignFlags are flags of kubectl, of kube-apiserver, of Kopf, of docker, of Helm, and of kubebuilder that documents name.
var foreignFlags = strings.Fields("token username password request-timeout module build-arg help max-mutating-requests-inflight skip-crds controller kopf-replace")

func TestDocumentedFlagsExist(t *testing.T) {
	defined := map[string]bool{}
	for _, command := range slices.Concat(newKopfCommand(nil, nil).Commands(), Commands(nil), []*cobra.Command{newOperatorCommand("operator", nil)}) {
		command.Flags().VisitAll(func(flag *pflag.Flag) { defined[flag.Name] = true })
	}
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no documents: %v", err)
	}
	for _, path := range append(paths, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range namedFlag.FindAllStringSubmatch(string(text), -1) {
			if !defined[found[1]] && !slices.Contains(foreignFlags, found[1]) {
				t.Errorf("%s: there is no flag --%s", filepath.Base(path), found[1])
			}
		}
	}
}

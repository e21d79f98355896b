package cli

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kopf-go/kopf/internal/golden"
	"github.com/kopf-go/kopf/pkg/cli/launch"
)

// TestHelp compares the help of every command with a file. If KOPF_UPDATE_GOLDEN is set, it
// writes the files.
func TestHelp(t *testing.T) {
	tests := map[string]struct {
		command   func() *cobra.Command
		arguments []string
	}{
		"operator":           {func() *cobra.Command { return newOperatorCommand("operator", nil) }, nil},
		"operator-commands":  {newOperatorWithCommands, nil},
		"operator-explain":   {newOperatorWithCommands, []string{"explain"}},
		"operator-plan":      {newOperatorWithCommands, []string{"plan"}},
		"operator-manifests": {newOperatorWithCommands, []string{"manifests"}},
		"operator-peers":     {newOperatorWithCommands, []string{"peers"}},
		"operator-shards":    {newOperatorWithCommands, []string{"shards"}},
		"operator-page":      {newOperatorWithCommands, []string{"page"}},
		"operator-release":   {newOperatorWithCommands, []string{"release"}},
		"operator-skip":      {newOperatorWithCommands, []string{"skip"}},
		"operator-suspend":   {newOperatorWithCommands, []string{"suspend"}},
		"kopf-explain":       {newTool, []string{"explain"}},
		"kopf":               {newTool, nil},
		"kopf-init":          {newTool, []string{"init"}},
		"kopf-run":           {newTool, []string{"run"}},
		"kopf-serve":         {newTool, []string{"serve"}},
		"kopf-cluster":       {newTool, []string{"cluster"}},
		"kopf-freeze":        {newTool, []string{"freeze"}},
		"kopf-resume":        {newTool, []string{"resume"}},
		"kopf-version":       {newTool, []string{"version"}},
		"kopf-completion":    {newTool, []string{"completion"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, flag := range []string{"--help", "-h"} {
				got := run(t, test.command(), append(test.arguments, flag)...)
				if got.code != ExitOK || got.log != "" {
					t.Errorf("got %+v", got)
				}
				compareHelp(t, filepath.Join("testdata", name+".txt"), got.out)
			}
		})
	}
	if got := run(t, newKopfCommand(nil, nil)); got.code != ExitOK || !strings.HasPrefix(got.out, "kopf runs Kubernetes operators") {
		t.Errorf("without a command: got %+v", got)
	}
}

// The program that kopf has built has another name than the command that the person calls.
func TestHelpOfABuiltProgramIsThatOfKopf(t *testing.T) {
	t.Setenv(launch.CalledAsVariable, "kopf COMMAND ./blog")
	tests := map[string]string{
		"explain": "Usage:\n  kopf explain ./blog KIND/NAME [flags]\n\nExamples:\n  kopf explain ./blog kopfexample/kopf-example-1\n",
		"plan":    "Usage:\n  kopf plan ./blog [KIND...] [flags]\n\nExamples:\n  kopf plan ./blog\n  kopf plan ./blog kopfexamples -n default --exit-code\n",
	}
	for name, want := range tests {
		if got := run(t, newOperatorWithCommands(), name, "--help"); !strings.Contains(got.out, want) {
			t.Errorf("got\n%s", got.out)
		}
	}
}

// The name of such a program is that of a folder, which the person has not called.
func TestErrorsOfABuiltProgramAreThoseOfKopf(t *testing.T) {
	t.Setenv(launch.CalledAsVariable, "kopf COMMAND ./blog")
	if got := run(t, newOperatorWithCommands(), "explain"); !strings.HasPrefix(got.log, "kopf: ") || !strings.HasSuffix(got.log, "\nTry kopf explain ./blog --help.\n") {
		t.Errorf("got %s", got.log)
	}
	if got := run(t, newOperatorWithCommands(), "--nonsense"); got.log != "kopf: unknown flag: --nonsense\nTry kopf run ./blog --help.\n" {
		t.Errorf("got %s", got.log)
	}
	failing := newOperatorCommand("blog", func(context.Context, Invocation) error { return errors.New("the leader is lost") })
	if got := run(t, failing); got.log != "kopf: the leader is lost\n" {
		t.Errorf("got %s", got.log)
	}
}

func newOperatorWithCommands() *cobra.Command {
	operator := newOperatorCommand("operator", nil)
	addCommands(operator, nil)
	return operator
}

func compareHelp(t *testing.T, path, got string) {
	t.Helper()
	golden.Compare(t, path, got)
	for line := range strings.Lines(got) {
		if len(line) > helpWidth+1 || strings.TrimRight(line, " \n") != strings.TrimRight(line, "\n") {
			t.Errorf("%s has a line that is too long, or ends in blanks: %q", path, line)
		}
	}
}

// newTool returns the command kopf.
func newTool() *cobra.Command { return newKopfCommand(nil, nil) }

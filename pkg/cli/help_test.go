package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelp compares every help with a file, where it can be read. With
// KOPF_UPDATE_GOLDEN set, it writes the files.
func TestHelp(t *testing.T) {
	tests := map[string]struct {
		command   func() *cobra.Command
		arguments []string
	}{
		"operator":        {func() *cobra.Command { return newOperator("operator", nil) }, nil},
		"kopf":            {newTool, nil},
		"kopf-run":        {newTool, []string{"run"}},
		"kopf-freeze":     {newTool, []string{"freeze"}},
		"kopf-resume":     {newTool, []string{"resume"}},
		"kopf-version":    {newTool, []string{"version"}},
		"kopf-completion": {newTool, []string{"completion"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, flag := range []string{"--help", "-h"} {
				got := called(t, test.command(), append(test.arguments, flag)...)
				if got.code != ExitOK || got.log != "" {
					t.Errorf("got %+v", got)
				}
				compare(t, filepath.Join("testdata", name+".txt"), got.out)
			}
		})
	}
	if got := called(t, newTool()); got.code != ExitOK || !strings.HasPrefix(got.out, "kopf runs Kubernetes operators") {
		t.Errorf("without a command: got %+v", got)
	}
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("KOPF_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs, run the test with KOPF_UPDATE_GOLDEN=1 if that is right; got\n%s", path, got)
	}
	for line := range strings.Lines(got) {
		if len(line) > width+1 || strings.TrimRight(line, " \n") != strings.TrimRight(line, "\n") {
			t.Errorf("%s has a line that is too long, or ends in blanks: %q", path, line)
		}
	}
}

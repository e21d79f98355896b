package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/settings"
)

// A program that has its own command line prints the errors of the commands, with its own prefix.
func TestErrorsOfTheCommandsInOtherPrograms(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "one", errors.New("no"))
	for name, test := range map[string]struct {
		arguments string
		load      error
		code      int
		log       string
	}{
		"a wrong flag":        {"release --nonsense", nil, ExitUsage, "Error: unknown flag: --nonsense\n"},
		"a missing argument":  {"release", nil, ExitUsage, "Error: no kind is given: use release KIND..., or --all\n"},
		"an error":            {"plan", errors.New("there are no handlers"), ExitError, "Error: there are no handlers\n"},
		"a forbidden request": {"plan", forbidden, ExitError, "Error: leases \"one\" is forbidden: no; grant the permission to this user in a role\n"},
		"an outcome":          {"plan", &exitError{3, "objects would be handled"}, 3, ""},
		"help":                {"plan --help", nil, ExitOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := &cobra.Command{Use: "manager", SilenceUsage: true}
			root.AddCommand(Commands(func(settings.Settings) (Program, error) { return Program{}, test.load })...)
			var out, log strings.Builder
			root.SetOut(&out)
			root.SetErr(&log)
			root.SetArgs(strings.Fields(test.arguments))
			if code := ExitCode(root.ExecuteContext(t.Context())); code != test.code || log.String() != test.log {
				t.Errorf("got the exit code %d, and %q", code, log.String())
			}
		})
	}
}

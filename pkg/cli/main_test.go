package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestExitCodes(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "one", errors.New("no"))
	tests := map[string]struct {
		arguments []string
		run       error
		want      result
	}{
		"success":                          {nil, nil, result{ExitOK, "", ""}},
		"an error":                         {nil, errors.New("the leader is lost"), result{ExitError, "", "operator: the leader is lost\n"}},
		"a forbidden request":              {nil, fmt.Errorf("no lease: %w", forbidden), result{ExitError, "", "operator: no lease: leases \"one\" is forbidden: no; grant the permission to this user in a role\n"}},
		"rejected credentials":             {nil, apierrors.NewUnauthorized("who are you?"), result{ExitError, "", "operator: who are you?; the API server rejects the credentials: log in again, or correct the kubeconfig\n"}},
		"the exit code of another process": {nil, &exitError{code: 7}, result{7, "", ""}},
		"an unknown flag":                  {[]string{"--nonsense"}, nil, result{ExitUsage, "", "operator: unknown flag: --nonsense\nTry operator --help.\n"}},
		"a canceled request":               {nil, fmt.Errorf("asking: %w", context.Canceled), result{ExitError, "", "operator: asking: context canceled\n"}},
		"an argument":                      {[]string{"completion"}, nil, result{ExitUsage, "", "operator: unexpected argument \"completion\": this command takes flags only\nTry operator --help.\n"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := run(t, newOperatorCommand("operator", func(context.Context, Invocation) error { return test.run }), test.arguments...)
			if got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestUnknownCommandsOfAnOperator(t *testing.T) {
	for argument, want := range map[string]string{
		"explian": "operator: unknown command \"explian\": did you mean explain?\nTry operator --help.\n",
		"unknown": "operator: unknown command \"unknown\"\nTry operator --help.\n",
	} {
		if got := run(t, newOperatorWithCommands(), argument); got.code != ExitUsage || got.log != want {
			t.Errorf("%s: got %+v", argument, got)
		}
	}
}

func TestAnInterruptedStartSucceeds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	command := newOperatorCommand("operator", func(ctx context.Context, _ Invocation) error { return fmt.Errorf("asking: %w", ctx.Err()) })
	command.SetArgs(nil)
	var log strings.Builder
	if code := execute(ctx, command, &log, &log); code != ExitOK || log.Len() > 0 {
		t.Errorf("got %d, %s", code, log.String())
	}
}

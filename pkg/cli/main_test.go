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
		"it ends well":         {nil, nil, result{ExitOK, "", ""}},
		"it ends badly":        {nil, errors.New("the leader is lost"), result{ExitError, "", "operator: the leader is lost\n"}},
		"it may not":           {nil, fmt.Errorf("no lease: %w", forbidden), result{ExitError, "", "operator: no lease: leases \"one\" is forbidden: no; a role must allow it to this user\n"}},
		"nobody knows it":      {nil, apierrors.NewUnauthorized("who are you?"), result{ExitError, "", "operator: who are you?; the credentials are not accepted: log in again, or correct the kubeconfig\n"}},
		"it was another":       {nil, &exitError{7}, result{7, "", ""}},
		"it is used wrongly":   {[]string{"--nonsense"}, nil, result{ExitUsage, "", "operator: unknown flag: --nonsense\nTry operator --help.\n"}},
		"it is stopped early":  {nil, fmt.Errorf("asking: %w", context.Canceled), result{ExitError, "", "operator: asking: context canceled\n"}},
		"help is an operation": {[]string{"completion"}, nil, result{ExitUsage, "", "operator: unexpected argument \"completion\": this command takes flags only\nTry operator --help.\n"}},
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

func TestAnInterruptedStartIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	command := newOperatorCommand("operator", func(ctx context.Context, _ Invocation) error { return fmt.Errorf("asking: %w", ctx.Err()) })
	command.SetArgs(nil)
	var log strings.Builder
	if code := execute(ctx, command, &log, &log); code != ExitOK || log.Len() > 0 {
		t.Errorf("got %d, %s", code, log.String())
	}
}

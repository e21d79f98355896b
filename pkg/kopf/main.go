package kopf

import (
	"context"
	"errors"
	"os"

	"github.com/kopf-go/kopf/pkg/cli"
)

// Main runs an operator with the handlers of the DefaultRegistry as a program:
// it reads the command line, connects to the cluster as kubectl does, unless there
// are login handlers, runs until
// it is interrupted, and exits with 0, with 1 after an error, or with 2 after a
// wrong command line. A program that wants to decide for itself uses Run.
//
// The settings are those that the given functions make, one after the other, of
// the default ones with what the command line says.
func Main(configure ...func(*Settings)) {
	//nolint:forbidigo // this function is the end of the program, for main() to call
	os.Exit(cli.Main(func(ctx context.Context, in cli.Invocation) error {
		s := in.Settings
		for _, change := range configure {
			change(&s)
		}
		if in.Named() && DefaultRegistry.connects() {
			return errors.New("--kubeconfig and --context have no effect: login handlers say which cluster it is")
		}
		return Run(ctx, Options{Settings: s, Connect: in.Connect, Logger: in.Logger})
	}))
}

package kopf

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/kopf-go/kopf/pkg/cli"
)

// Main runs an operator as a program. It reads the command line, connects to the cluster
// like kubectl, unless there are login handlers, and runs until it is interrupted. It exits
// with 0, with 1 after an error, or with 2 after a mistake in the command line. Programs with
// other needs call Run.
//
// The functions change the options one after the other. The options are the defaults, with
// the settings and the logger of the command line.
func Main(configure ...func(*Options)) {
	//nolint:forbidigo // this function ends the program, and main() calls it
	os.Exit(cli.Main(func(ctx context.Context, in cli.Invocation) error {
		options := Options{Settings: in.Settings, Logger: in.Logger}
		for _, change := range configure {
			change(&options)
		}
		if flags := in.ConnectionFlags(); len(flags) > 0 && options.connects() {
			return fmt.Errorf("%s cannot be used: the program selects the cluster, by login handlers or by its options", strings.Join(flags, ", "))
		}
		if !options.connects() {
			options.Connect = in.Connect
		}
		return Run(ctx, options)
	}))
}

// connects reports whether the options or the login handlers select the cluster.
func (o Options) connects() bool {
	return o.Config != nil || o.Connect != nil || o.Registry.connects()
}

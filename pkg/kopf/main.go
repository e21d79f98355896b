package kopf

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/cli"
	"github.com/kopf-go/kopf/pkg/operator"
)

// Main runs an operator as a program. It reads the command line, connects to the cluster
// like kubectl, unless there are login handlers, and runs until it is interrupted. It exits
// with 0, with 1 after an error, or with 2 after a mistake in the command line. Programs with
// other needs call Run.
//
// The functions change the options one after the other. The options are the defaults, with
// the settings and the logger of the command line. The command manifests calls the functions twice, so
// handlers that they declare belong in a registry that they make.
func Main(configure ...func(*Options)) {
	//nolint:forbidigo // this function ends the program, and main() calls it
	os.Exit(cli.Main(func(ctx context.Context, in cli.Invocation) error {
		options := Options{Registry: DefaultRegistry, Settings: in.Settings, Logger: in.Logger}
		for _, change := range configure {
			change(&options)
		}
		for _, flag := range in.Overridden(options.Settings) {
			options.Logger.Info("A flag has no effect, because the program sets something else in its code.", "flag", flag)
		}
		if flags := in.ConnectionFlags(); len(flags) > 0 && options.connects() {
			return fmt.Errorf("%s cannot be used: the program selects the cluster, by login handlers or by its options", strings.Join(flags, ", "))
		}
		if !options.connects() {
			options.Connect = in.Connect
		}
		return Run(ctx, options)
	}, loader(configure)))
}

// Commands returns the commands that answer questions about an operator: explain, plan, peers, and
// others; those that send requests; and release, which removes its state before an uninstall.
// Programs of Main have them; add them to the command line of another program, such as one with the
// manager of controller-runtime:
//
//	root.AddCommand(kopf.Commands()...)
//	os.Exit(kopf.ExitCode(root.Execute()))
//
// The functions change the options as for Main: the registry, the scheme, and the settings. The
// commands connect to the cluster like kubectl. They call neither handlers nor login handlers (release
// calls startup handlers on request), and only release and those that send requests change something.
// For an operator of Add, set Settings.Replicas.LeaseName to the LeaderElectionID of the manager, so
// that release notices a manager that runs.
func Commands(configure ...func(*Options)) []*cobra.Command { return cli.Commands(loader(configure)) }

// ExitCode returns the exit code for an error that a command line with the Commands has returned. It
// is 0 without an error, and 2 for a mistake in the flags or arguments of one of the Commands. It is 3
// for an outcome that scripts ask for, such as that of plan --exit-code, and 1 for any other error.
// The root command has printed the error, unless you have set its SilenceErrors.
func ExitCode(err error) int { return cli.ExitCode(err) }

// loader returns a function that returns the program without running it.
func loader(configure []func(*Options)) cli.Load {
	return func(s Settings) (cli.Program, error) {
		options := Options{Registry: DefaultRegistry, Settings: s}
		for _, change := range configure {
			change(&options)
		}
		complete, err := options.complete()
		if err != nil {
			return cli.Program{}, err
		}
		if complete.Scheme == nil {
			complete.Scheme = scheme.Scheme
		}
		handlers, err := complete.Registry.Handlers(complete.Scheme)
		if err != nil {
			return cli.Program{}, err
		}
		return cli.Program{
			Handlers: handlers, Startup: complete.Registry.Activities().OfKind(handler.OnStartup),
			Needs: complete.Registry.Needs(), Conversions: complete.Registry.Conversions(complete.Scheme), Settings: complete.Settings, Scheme: complete.Scheme,
			StartUp: func(ctx context.Context, config *rest.Config) (Settings, error) {
				complete.Config = config
				complete.Connect = nil
				return operator.SettingsAfterStartup(ctx, complete)
			},
		}, nil
	}
}

// Configure changes the settings before the operator starts, after the command line and the options
// of the program, and before startup handlers. The function must only change the settings: commands
// such as explain call it, too, and they do not call startup handlers. Several functions are called in
// their order; a nil function is ignored.
func (r *Registry) Configure(change func(*Settings)) {
	if r == nil {
		r.declared().Refuse("kopf.Configure")
		return
	}
	r.configuration.add(change)
}

// configuration is the part of a registry with the functions of Configure.
type configuration struct {
	mu        sync.Mutex
	functions []func(*Settings)
}

// add adds a function, unless it is nil.
func (c *configuration) add(change func(*Settings)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if change != nil {
		c.functions = append(c.functions, change)
	}
}

// applyTo changes settings with the functions.
func (c *configuration) applyTo(s *Settings) {
	c.mu.Lock()
	functions := slices.Clone(c.functions)
	c.mu.Unlock()
	for _, change := range functions {
		change(s)
	}
}

// connects reports whether the options or the login handlers select the cluster.
func (o Options) connects() bool {
	return o.Config != nil || o.Connect != nil || o.Registry.hasLogin()
}

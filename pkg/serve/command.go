package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/kopf-go/kopf/pkg/cli"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/serve/conformance"
)

// Command is what the command kopf does with files.
type Command struct{}

var _ cli.Serving = Command{}

// ApplySettings changes settings to those of files, without starting anything.
func (Command) ApplySettings(files []string, s *kopf.Settings) error {
	documents, err := readAll(files)
	if err != nil {
		return err
	}
	for _, d := range documents {
		if err := d.ApplySettings(s); err != nil {
			return err
		}
	}
	return nil
}

// Variables returns the names of the variables of the operator that files name for their programs and workers.
func (Command) Variables(files []string) ([]string, error) {
	documents, err := readAll(files)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range documents {
		names = append(names, d.Environment()...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(inherited(), name) }), nil
}

// Commands returns the commands about the operator of files. Workers run until the end, because they say which
// handlers they have.
func (Command) Commands(ctx context.Context, files []string) ([]*cobra.Command, func() error, error) {
	program, err := Load(ctx, Options{Files: files, Logger: logr.Discard()})
	if err != nil {
		return nil, nil, err
	}
	registry := kopf.NewRegistry()
	program.Declare(registry)
	var mistake error
	commands := kopf.Commands(func(o *kopf.Options) {
		o.Registry = registry
		mistake = errors.Join(program.ApplySettings(&o.Settings), program.ConfigureAdmission(&o.Settings))
	})
	return commands, func() error { return errors.Join(mistake, program.Close()) }, nil
}

// CheckWorker tests a worker, and writes a report.
func (Command) CheckWorker(ctx context.Context, command []string, out, log io.Writer) error {
	return conformance.Run(ctx, command, out, log)
}

// Run runs the operator of files.
func (Command) Run(ctx context.Context, files []string, in cli.Invocation, how cli.Serve) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := func() Options { return Options{Files: files, Logger: in.Logger, Kubeconfig: in.Kubeconfig()} }
	var fileChanges, clusterChanges <-chan []string
	if how.Metacontroller {
		config, err := in.Connect(ctx)
		if err != nil {
			return err
		}
		controllers, err := follow(ctx, config)
		if err != nil {
			return err
		}
		clusterChanges = controllers.changed
		options = func() Options {
			return Options{Files: files, Logger: in.Logger, Kubeconfig: in.Kubeconfig(), Cluster: controllers.document(in.Logger)}
		}
	}
	program, err := Load(ctx, options())
	if err != nil {
		return err
	}
	if how.Watch {
		changes, err := newWatcher(files)
		if err != nil {
			return errors.Join(err, program.Close())
		}
		defer changes.close()
		fileChanges = changes.changed
	}
	if fileChanges == nil && clusterChanges == nil {
		return errors.Join(run(ctx, program, in), program.Close())
	}
	for {
		next, err := runUntilChanged(ctx, program, options, in, fileChanges, clusterChanges)
		if next == nil || err != nil {
			return err
		}
		program = next
	}
}

// run runs a program until the context is done.
func run(ctx context.Context, program *Program, in cli.Invocation) error {
	if err := program.ConfigureAdmission(&in.Settings); err != nil {
		return err
	}
	registry := kopf.NewRegistry()
	program.Declare(registry)
	return kopf.Run(ctx, kopf.Options{Registry: registry, Settings: in.Settings, Logger: in.Logger, Connect: in.Connect})
}

// runUntilChanged runs a program until its files or the controllers of the cluster change, and returns the next one. A next
// one with mistakes is reported, and the program goes on. It returns nil at the end.
func runUntilChanged(ctx context.Context, program *Program, options func() Options, in cli.Invocation, files, cluster <-chan []string) (*Program, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- run(running, program, in) }()
	for {
		var changed []string
		select {
		case err := <-ended:
			return nil, errors.Join(err, program.Close())
		case changed = <-files:
		case changed = <-cluster:
		}
		next, err := Load(ctx, options())
		if err != nil {
			in.Logger.Error(err, "The changed files have mistakes. The operator continues as it was.")
			continue
		}
		in.Logger.Info("What the operator runs has changed. The operator begins again when the calls that run have ended.", "changed", strings.Join(changed, ", "))
		if err := program.Drain(ctx); err != nil {
			return nil, errors.Join(<-ended, next.Close(), program.Close())
		}
		program.TurnAway()
		stop()
		if err := errors.Join(<-ended, program.Close()); err != nil {
			return nil, errors.Join(fmt.Errorf("the operator could not be stopped for its changed files: %w", err), next.Close())
		}
		return next, nil
	}
}

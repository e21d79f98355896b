package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/cli/release"
	"github.com/kopf-go/kopf/pkg/cli/terminal"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/settings"
)

// releaseFlags are the flags of the command release, apart from those of all commands.
type releaseFlags struct {
	release.Options

	runStartup bool
}

// validate returns the mistakes in the flags.
func (f *releaseFlags) validate(kinds []string) error {
	switch {
	case f.All && len(kinds) > 0:
		return usageErrorf("there are both kinds and --all: choose one")
	case !f.All && len(kinds) == 0:
		return usageErrorf("no kind is given: use release KIND..., or --all")
	case f.runStartup && (f.Finalizer != "" || len(f.Prefixes) > 0):
		return usageErrorf("--run-startup finds out what --finalizer and --prefix say: choose one")
	}
	return nil
}

// errHeld is the end of a release that has skipped objects.
var errHeld = &exitError{exitChanges, "objects that are being deleted were skipped"}

// errRefused is the end of a dry run of a release that would be refused.
var errRefused = &exitError{ExitError, "the release would be refused"}

func newReleaseCommand(load Load) *cobra.Command {
	flags := &releaseFlags{}
	command := newQuestion(load, "release KIND... [flags]", "Remove the state of the operator from objects, before an uninstall",
		"Remove the finalizer and the records of the operator from all objects, so that they can be deleted\n"+
			"without it: the last handled state, the progress, requests, and revisions. It calls no deletion\n"+
			"handlers. Objects that are being deleted and wait for the operator are listed and skipped. Without\n"+
			"--namespace, it releases the objects in all namespaces, or in those of the settings.\n\n"+
			"Stop the operator first: it would handle released objects as new ones. The command refuses while\n"+
			"its lease is held or a peer is alive. A lease or a peering without an operator proves that it is\n"+
			"stopped only if the settings of the program require it. Otherwise, or if those with the default\n"+
			"names are in use, confirm it with --operator-stopped. The command can be interrupted and repeated.\n\n"+
			"The exit code is 3 if objects were skipped. A dry run has the exit code of the release.",
		"  release kopfexamples --dry-run\n  release --all",
		func(q *question, command *cobra.Command, arguments []string) error {
			if err := flags.validate(arguments); err != nil {
				return err
			}
			flags.Kinds = arguments
			flags.Options.Namespace = q.namespace
			flags.CommandLine = q.called
			end := flags.showProgress(command.ErrOrStderr())
			report, err := q.release(command.Context(), flags)
			end()
			if report != nil {
				err = errors.Join(q.write(command.OutOrStdout(), report), err)
			}
			switch {
			case err != nil:
				return err
			case len(report.Refused) > 0:
				return errRefused
			case report.Failed() > 0:
				return fmt.Errorf("%s not released: repeat the command", plural.Of(report.Failed(), "object was", "objects were"))
			case report.Held() > 0:
				return errHeld
			}
			return nil
		})
	describeNamespace(command, "the `namespace` (default: all, or those of the settings)")
	defineGroup(command.Flags(), "Release", func(set *pflag.FlagSet) {
		set.BoolVar(&flags.All, "all", false, "release the objects of all resources that the operator stores something on")
		set.BoolVar(&flags.DryRun, "dry-run", false, "only show what would be released")
		set.BoolVar(&flags.AbandonDeletions, "abandon-deletions", false, "also release objects that are being deleted: they disappear, and nothing cleans up for them")
		set.StringSliceVar(&flags.AlsoIDs, "also-ids", nil, "the `ids` of handlers that are not declared anymore, whose progress is removed, too")
		set.StringVar(&flags.LeaseName, "lease-name", "", "the `name` of the lease of the operator, which must not be held; that of a manager is its LeaderElectionID (default: as in the settings)")
		set.StringVar(&flags.LeaseNamespace, "lease-namespace", "", "the `namespace` of the lease (default: as in the settings, or all)")
		set.StringVarP(&flags.Peering, "peering", "P", "", "the `name` of the peering object, in which no operator may be alive (default: as in the settings)")
		set.BoolVar(&flags.OperatorStopped, "operator-stopped", false, "confirm that the operator is stopped, if neither its lease nor its peering shows it, or if others use those with the default names")
		set.BoolVar(&flags.runStartup, "run-startup", false, "call the startup handlers for the settings that they make, and the cleanup handlers; with --dry-run, they can only read")
		set.StringVar(&flags.Finalizer, "finalizer", "", "the `name` of the finalizer to remove (default: as in the settings)")
		set.StringSliceVar(&flags.Prefixes, "prefix", nil, "the `prefixes` of the annotations to remove, in place of the storages in the settings")
	})
	return command
}

// showProgress shows how far the command is: in a pipe, only what was written.
func (f *releaseFlags) showProgress(out io.Writer) (end func()) {
	scan := &terminal.Progress{Out: out, Quiet: true}
	line := &terminal.Progress{Out: out}
	f.Scanned = func(resource string, done int) {
		scan.Show(fmt.Sprintf("looking at %s: %s", resource, plural.Of(done, "object", "objects")))
	}
	f.Progress = func(resource string, done, total int) {
		scan.End()
		line.Show(fmt.Sprintf("%s: %d of %s", resource, done, plural.Of(total, "object", "objects")))
	}
	return func() { scan.End(); line.End() }
}

// release connects to the cluster, and releases the objects.
func (q *question) release(ctx context.Context, flags *releaseFlags) (*release.Report, error) {
	defaults := settings.Default()
	defaults.Replicas.LeaseName = "" // depends on the name of the operator
	program, err := q.load(defaults)
	if err != nil {
		return nil, err
	}
	hasExplicit := flags.Finalizer != "" && len(flags.Prefixes) > 0
	if len(program.Startup) > 0 && !flags.runStartup && !hasExplicit {
		first := program.Startup[0]
		return nil, fmt.Errorf("the startup handler %s (%s) can change the settings, so the finalizer and the annotations are unknown: add --run-startup to call it, or say them with --finalizer and --prefix", first.ID, first.DeclaredAt)
	}
	config, err := q.config(ctx)
	if err != nil {
		return nil, err
	}
	if flags.runStartup {
		of := config
		if flags.DryRun {
			of = inspect.ReadOnly(config)
		}
		program.Settings, err = program.StartUp(ctx, rest.CopyConfig(of))
		if err != nil {
			return nil, err
		}
	}
	releaser, err := release.New(ctx, config, program, flags.Options)
	if err != nil {
		return nil, err
	}
	return releaser.Run(ctx)
}

package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/pkg/settings"
)

// freezeFlags are the flags of freeze and resume.
type freezeFlags struct {
	scope      scope
	peering    string
	connection connection
	options    peering.FreezeOptions
}

func newFreezeCommand() *cobra.Command {
	p := &freezeFlags{options: peering.FreezeOptions{Priority: peering.DefaultFreezePriority}}
	command := p.newCommand("freeze", "Pause the operators of a peering for some time",
		"Pause the operators of a peering, until they are resumed or the lifetime is over. What\n"+
			"happens to their objects meanwhile is handled afterwards. To freeze again is to replace\n"+
			"what the same person has said before.", p.freeze)
	command.Example = "  kopf freeze --lifetime 10m\n  kopf freeze -n default --peering mine --lifetime 3600 --message \"a migration\""
	defineGroup(command.Flags(), "How", func(set *pflag.FlagSet) {
		set.VarP((*lifetimeFlag)(&p.options.Lifetime), "lifetime", "t", "when they resume by themselves: seconds, or a time with a unit (required)")
		set.Lookup("lifetime").DefValue = "0"
		set.IntVarP(&p.options.Priority, "priority", "p", p.options.Priority, "pause the operators of this priority and of lower ones")
		set.StringVarP(&p.options.Message, "message", "m", "", "why: a `text` for those who look at the peering object")
		p.defineIdentity(set)
	})
	defineGroup(command.Flags(), "Connection", p.connection.define)
	return command
}

func newResumeCommand() *cobra.Command {
	p := &freezeFlags{}
	command := p.newCommand("resume", "Let the operators of a peering go on",
		"Take back what freeze has said, under the same identity. It is no error if there is\nnothing to be taken back.", p.resume)
	command.Example = "  kopf resume\n  kopf resume -n default --peering mine"
	defineGroup(command.Flags(), "How", p.defineIdentity)
	defineGroup(command.Flags(), "Connection", p.connection.define)
	return command
}

func (f *freezeFlags) newCommand(name, short, long string, run func(context.Context, *cobra.Command) error) *cobra.Command {
	command := &cobra.Command{
		Use: name, Short: short, Long: long, Args: rejectArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := applyEnvironment(command.Flags(), environment); err != nil {
				return err
			}
			f.connection.complete(command.Flags())
			return run(command.Context(), command)
		},
	}
	command.Flags().SortFlags = false
	defineGroup(command.Flags(), "Which operators", func(set *pflag.FlagSet) {
		set.StringVar(&f.peering, "peering", settings.DefaultPeeringName, "the `name` of the peering object in which they meet")
		set.StringArrayVarP(&f.scope.namespaces, "namespace", "n", nil, "those of a KopfPeering in this `namespace`; can be repeated")
		set.BoolVarP(&f.scope.all, "all-namespaces", "A", false, "those of a ClusterKopfPeering (the default)")
	})
	return command
}

func (f *freezeFlags) defineIdentity(set *pflag.FlagSet) {
	set.StringVarP(&f.options.Identity, "id", "i", "", "the `identity` that freezes and resumes (default: user@host)")
}

func (f *freezeFlags) freeze(ctx context.Context, command *cobra.Command) error {
	if f.options.Lifetime == 0 {
		return usageErrorf("--lifetime is missing: how long are the operators to pause, such as 10m?")
	}
	return f.forEachTarget(ctx, func(config *rest.Config, target peering.Target) error {
		if err := peering.Freeze(ctx, config, target, f.options); err != nil {
			return err
		}
		command.Println(fmt.Sprintf("The operators of the %s pause until %s, or until %s resumes them.",
			describeTarget(target), time.Now().Add(f.options.Lifetime).Format(time.DateTime), f.identity()))
		return nil
	})
}

func (f *freezeFlags) resume(ctx context.Context, command *cobra.Command) error {
	return f.forEachTarget(ctx, func(config *rest.Config, target peering.Target) error {
		if err := peering.Resume(ctx, config, target, f.options.Identity); err != nil {
			return err
		}
		command.Println(fmt.Sprintf("The operators of the %s are not paused by %s any longer.", describeTarget(target), f.identity()))
		return nil
	})
}

func (f *freezeFlags) identity() string { return cmp.Or(f.options.Identity, peering.ManualIdentity()) }

// forEachTarget does something with all peering objects that are meant, up to the first
// error.
func (f *freezeFlags) forEachTarget(ctx context.Context, do func(*rest.Config, peering.Target) error) error {
	targets, err := f.targets()
	if err != nil {
		return err
	}
	config, err := f.connection.connect(ctx)
	if err != nil {
		return err
	}
	for _, target := range targets {
		if err := do(config, target); err != nil {
			return err
		}
	}
	return nil
}

func (f *freezeFlags) targets() ([]peering.Target, error) {
	var targets []peering.Target
	for _, namespace := range splitNamespaces(f.scope.namespaces) {
		if selector.IsPattern(namespace) {
			return nil, usageErrorf("--namespace is %q: a pattern has no peering object of its own, give names", namespace)
		}
		targets = append(targets, peering.Target{Name: f.peering, Namespace: namespace})
	}
	if len(targets) == 0 {
		targets = append(targets, peering.Target{Name: f.peering})
	}
	return targets, nil
}

func describeTarget(target peering.Target) string {
	if target.Namespace == "" {
		return fmt.Sprintf("ClusterKopfPeering %q", target.Name)
	}
	return fmt.Sprintf("KopfPeering %q in the namespace %q", target.Name, target.Namespace)
}

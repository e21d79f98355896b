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

// pausing are the flags of freeze and resume.
type pausing struct {
	scope      scope
	peering    string
	connection connection
	pause      peering.FreezeOptions
}

func newFreeze() *cobra.Command {
	p := &pausing{pause: peering.FreezeOptions{Priority: peering.DefaultFreezePriority}}
	command := p.command("freeze", "Pause the operators of a peering for some time",
		"Pause the operators of a peering, until they are resumed or the lifetime is over. What\n"+
			"happens to their objects meanwhile is handled afterwards. To freeze again is to replace\n"+
			"what the same person has said before.", p.freeze)
	command.Example = "  kopf freeze --lifetime 10m\n  kopf freeze -n default --peering mine --lifetime 3600 --message \"a migration\""
	inGroup(command.Flags(), "How", func(set *pflag.FlagSet) {
		set.VarP((*lifetime)(&p.pause.Lifetime), "lifetime", "t", "when they resume by themselves: seconds, or a time with a unit (required)")
		set.Lookup("lifetime").DefValue = "0"
		set.IntVarP(&p.pause.Priority, "priority", "p", p.pause.Priority, "pause the operators of this priority and of lower ones")
		set.StringVarP(&p.pause.Message, "message", "m", "", "why: a `text` for those who look at the peering object")
		p.defineIdentity(set)
	})
	inGroup(command.Flags(), "Connection", p.connection.define)
	return command
}

func newResume() *cobra.Command {
	p := &pausing{}
	command := p.command("resume", "Let the operators of a peering go on",
		"Take back what freeze has said, under the same identity. It is no error if there is\nnothing to be taken back.", p.resume)
	command.Example = "  kopf resume\n  kopf resume -n default --peering mine"
	inGroup(command.Flags(), "How", p.defineIdentity)
	inGroup(command.Flags(), "Connection", p.connection.define)
	return command
}

func (p *pausing) command(name, short, long string, run func(context.Context, *cobra.Command) error) *cobra.Command {
	command := &cobra.Command{
		Use: name, Short: short, Long: long, Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := completed(command.Flags(), environment); err != nil {
				return err
			}
			return run(command.Context(), command)
		},
	}
	command.Flags().SortFlags = false
	inGroup(command.Flags(), "Which operators", func(set *pflag.FlagSet) {
		set.StringVar(&p.peering, "peering", settings.DefaultPeeringName, "the `name` of the peering object in which they meet")
		set.StringArrayVarP(&p.scope.namespaces, "namespace", "n", nil, "those of a KopfPeering in this `namespace`; can be repeated")
		set.BoolVarP(&p.scope.all, "all-namespaces", "A", false, "those of a ClusterKopfPeering (the default)")
	})
	return command
}

func (p *pausing) defineIdentity(set *pflag.FlagSet) {
	set.StringVarP(&p.pause.Identity, "id", "i", "", "the `identity` that freezes and resumes (default: user@host)")
}

func (p *pausing) freeze(ctx context.Context, command *cobra.Command) error {
	if p.pause.Lifetime == 0 {
		return misused("--lifetime is missing: how long are the operators to pause, such as 10m?")
	}
	return p.each(ctx, func(config *rest.Config, target peering.Target) error {
		if err := peering.Freeze(ctx, config, target, p.pause); err != nil {
			return err
		}
		command.Println(fmt.Sprintf("The operators of the %s pause until %s, or until %s resumes them.",
			describe(target), time.Now().Add(p.pause.Lifetime).Format(time.DateTime), p.identity()))
		return nil
	})
}

func (p *pausing) resume(ctx context.Context, command *cobra.Command) error {
	return p.each(ctx, func(config *rest.Config, target peering.Target) error {
		if err := peering.Resume(ctx, config, target, p.pause.Identity); err != nil {
			return err
		}
		command.Println(fmt.Sprintf("The operators of the %s are not paused by %s any longer.", describe(target), p.identity()))
		return nil
	})
}

func (p *pausing) identity() string { return cmp.Or(p.pause.Identity, peering.ManualIdentity()) }

// each does something with all peering objects that are meant, up to the first
// error.
func (p *pausing) each(ctx context.Context, do func(*rest.Config, peering.Target) error) error {
	targets, err := p.targets()
	if err != nil {
		return err
	}
	config, err := p.connection.connect(ctx)
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

func (p *pausing) targets() ([]peering.Target, error) {
	var targets []peering.Target
	for _, namespace := range separated(p.scope.namespaces) {
		if selector.IsPattern(namespace) {
			return nil, misused("--namespace is %q: a pattern has no peering object of its own, give names", namespace)
		}
		targets = append(targets, peering.Target{Name: p.peering, Namespace: namespace})
	}
	if len(targets) == 0 {
		targets = append(targets, peering.Target{Name: p.peering})
	}
	return targets, nil
}

func describe(target peering.Target) string {
	if target.Namespace == "" {
		return fmt.Sprintf("ClusterKopfPeering %q", target.Name)
	}
	return fmt.Sprintf("KopfPeering %q in the namespace %q", target.Name, target.Namespace)
}

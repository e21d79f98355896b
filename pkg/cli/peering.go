package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/pkg/settings"
)

// freezeFlags holds the flags of freeze and resume.
type freezeFlags struct {
	scope      scope
	peering    string
	connection connection
	logging    logFlags
	dev        bool
	options    peering.FreezeOptions
}

func newFreezeCommand() *cobra.Command {
	p := &freezeFlags{options: peering.FreezeOptions{Priority: peering.DefaultFreezePriority}}
	command := p.newCommand("freeze", "Pause the operators of a peering for some time",
		"Pause the operators of a peering until you resume them or the lifetime expires. They handle\n"+
			"changes of their objects afterwards. Another freeze with the same identity replaces the\n"+
			"previous one.", p.freeze)
	command.Example = "  kopf freeze --lifetime 10m\n  kopf freeze -n default --peering mine --lifetime 3600 --message \"a migration\""
	defineGroup(command.Flags(), "Freeze", func(set *pflag.FlagSet) {
		set.VarP((*lifetimeFlag)(&p.options.Lifetime), "lifetime", "t", "how long they pause at most: seconds, or a duration with a unit (required)")
		set.Lookup("lifetime").DefValue = "0"
		set.IntVarP(&p.options.Priority, "priority", "p", p.options.Priority, "pause operators with this priority or a lower one")
		set.BoolVar(&p.dev, "dev", false, "pause operators under development, too: sets the priority 666, whatever --priority says")
		set.StringVarP(&p.options.Message, "message", "m", "", "the reason: a `text` for people who look at the peering object")
		p.defineIdentity(set)
	})
	defineGroup(command.Flags(), "Logging", p.logging.define)
	defineGroup(command.Flags(), "Connection", p.connection.define)
	return command
}

func newResumeCommand() *cobra.Command {
	p := &freezeFlags{}
	command := p.newCommand("resume", "Resume the operators of a peering",
		"Remove the freeze with the same identity. If there is only one by another identity, the command\n"+
			"fails, and says how to remove that. It is not an error if there is none at all.", p.resume)
	command.Example = "  kopf resume\n  kopf resume -n default --peering mine"
	defineGroup(command.Flags(), "Freeze", p.defineIdentity)
	defineGroup(command.Flags(), "Logging", p.logging.define)
	defineGroup(command.Flags(), "Connection", p.connection.define)
	return command
}

func (f *freezeFlags) newCommand(name, short, long string, run func(context.Context, *cobra.Command) error) *cobra.Command {
	command := &cobra.Command{
		Use: name, Short: short, Long: long, Args: rejectArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := applyEnvironment(command.Flags(), name, environment); err != nil {
				return err
			}
			for _, name := range unknownVariables(os.Environ()) {
				command.PrintErrf("kopf: the environment variable %s is unknown and has no effect\n", name)
			}
			// Asking the name service for the host takes time, so it is done once.
			if f.options.Identity == "" {
				f.options.Identity = peering.ManualIdentity()
			}
			if f.dev {
				f.options.Priority = settings.DevelopmentPriority
			}
			if err := f.logging.complete(command.Flags()); err != nil {
				return err
			}
			f.logging.installLogger(f.logging.newLogger(command.ErrOrStderr()))
			f.connection.complete(command.Flags())
			return run(command.Context(), command)
		},
	}
	command.Flags().SortFlags = false
	defineGroup(command.Flags(), "Which operators", func(set *pflag.FlagSet) {
		set.StringVarP(&f.peering, "peering", "P", settings.DefaultPeeringName, "the `name` of the peering object")
		set.StringArrayVarP(&f.scope.namespaces, "namespace", "n", nil, "use the KopfPeering in this `namespace`; can be repeated")
		set.BoolVarP(&f.scope.all, "all-namespaces", "A", false, "use the ClusterKopfPeering (the default)")
	})
	return command
}

func (f *freezeFlags) defineIdentity(set *pflag.FlagSet) {
	set.StringVarP(&f.options.Identity, "id", "i", "", "the `identity` of the freeze (default: $POD_ID, or user@host)")
}

func (f *freezeFlags) freeze(ctx context.Context, command *cobra.Command) error {
	if f.options.Lifetime == 0 {
		return usageErrorf("--lifetime is missing: set how long the operators pause, for example 10m")
	}
	called := f.calledAs(command)
	return f.forEachTarget(ctx, func(config *rest.Config, target peering.Target) error {
		frozen, err := peering.Freeze(ctx, config, target, f.options)
		if err != nil {
			return err
		}
		command.Println(fmt.Sprintf("The operators of the %s pause until %s, or until: %s",
			describeTarget(target), time.Now().Add(f.options.Lifetime).UTC().Format(time.RFC3339), called.Resume(target, f.options.Identity)))
		command.Println(describeFrozen(frozen, f.options.Priority))
		return nil
	})
}

// describeFrozen says which operators pause: a freeze that pauses none is most likely a
// mistake.
func describeFrozen(frozen peering.Frozen, priority int) string {
	text := "No operator has joined the peering yet; those that join pause. A running operator joins a new object at once, " +
		"or within a minute if the definitions of peering are new, too, and it may not watch definitions."
	switch {
	case len(frozen.Paused) > 0:
		text = "The freeze pauses " + strings.Join(frozen.Paused, ", ") + "."
	case len(frozen.Active) > 0:
		text = "The freeze pauses no operator."
	}
	if len(frozen.Forbidden) > 0 {
		text += fmt.Sprintf(" Operators that meet only in the API group %s do not pause: the peering object there may not be changed (verb patch).", strings.Join(frozen.Forbidden, ", "))
	}
	if len(frozen.Active) > 0 {
		text += fmt.Sprintf(" The priority %d is too low for %s: set --priority.", priority, strings.Join(frozen.Active, ", "))
	}
	return text
}

func (f *freezeFlags) resume(ctx context.Context, command *cobra.Command) error {
	var frozen []error // by others; the errors say how to end that
	called := f.calledAs(command)
	err := f.forEachTarget(ctx, func(config *rest.Config, target peering.Target) error {
		err := peering.Resume(ctx, config, target, f.options.Identity)
		var others *peering.NotFrozenError
		switch {
		case errors.As(err, &others) && len(others.Freezes) > 0:
			var ends []string
			for _, identity := range slices.Sorted(maps.Keys(others.Freezes)) {
				ends = append(ends, called.Resume(target, identity))
			}
			frozen = append(frozen, fmt.Errorf("nothing was changed in the %s: %w. To end that: %s", describeTarget(target), others, strings.Join(ends, "; ")))
		case others != nil:
			command.Println(fmt.Sprintf("Nothing was changed in the %s: %s.", describeTarget(target), others))
		case err != nil:
			return err
		default:
			command.Println(fmt.Sprintf("%[2]s no longer pauses the operators of the %[1]s.", describeTarget(target), f.options.Identity))
		}
		return nil
	})
	return errors.Join(append(frozen, err)...)
}

// calledAs returns how the commands of kopf are called for the same cluster.
func (f *freezeFlags) calledAs(command *cobra.Command) inspect.CommandLine {
	return inspect.CommandLine{Flags: f.connection.arguments(command.Flags())}
}

// forEachTarget calls a function for each selected peering object, until the first error.
func (f *freezeFlags) forEachTarget(ctx context.Context, do func(*rest.Config, peering.Target) error) error {
	var targets []peering.Target
	for _, namespace := range splitNamespaces(f.scope.namespaces) {
		if selector.IsPattern(namespace) {
			return usageErrorf("--namespace is %q: use names instead of patterns", namespace)
		}
		targets = append(targets, peering.Target{Name: f.peering, Namespace: namespace})
	}
	if len(targets) == 0 {
		targets = append(targets, peering.Target{Name: f.peering})
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

func describeTarget(target peering.Target) string {
	if target.Namespace == "" {
		return fmt.Sprintf("ClusterKopfPeering %q", target.Name)
	}
	return fmt.Sprintf("KopfPeering %q in the namespace %q", target.Name, target.Namespace)
}

func newPeersCommand(load Load) *cobra.Command {
	var name string
	command := newQuestion(load, "peers [flags]", "Show which operators pause each other",
		"Show the entries of the peering objects that the operator uses: of the cluster, or of the namespaces\n"+
			"in its settings. If the operator has the flags --namespace and --peering, set them here, too.",
		"  peers\n  peers -n default --peering mine",
		func(q *question, command *cobra.Command, arguments []string) error {
			if err := rejectArguments(command, arguments); err != nil {
				return err
			}
			namespace := q.namespace
			cluster, _, err := q.connect(command.Context())
			if err != nil {
				return err
			}
			peers, err := cluster.Peers(command.Context(), name, namespace)
			if err != nil {
				return err
			}
			return q.write(command.OutOrStdout(), peers)
		})
	describeNamespace(command, "the `namespace` that the operator serves (default: as in the settings)")
	command.Flags().StringVarP(&name, "peering", "P", "", "the `name` of the peering object (default: as in the settings)")
	return command
}

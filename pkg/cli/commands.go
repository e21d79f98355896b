package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/pkg/cli/launch"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Program is the operator that commands ask about. It is internal to the framework.
type Program = inspect.Program

// Load returns the program with the settings of the command line.
type Load func(settings.Settings) (Program, error)

// Commands returns the commands that answer questions about an operator, such as explain, for the
// command line of a program. They belong to no operator that runs.
func Commands(load Load) []*cobra.Command {
	commands := []*cobra.Command{
		newExplainCommand(load), newPlanCommand(load), newPeersCommand(load), newShardsCommand(load), newPageCommand(load),
		newRBACCommand(load), newManifestsCommand(load),
		newRequestCommand(load, "retry"), newRequestCommand(load, "rerun"), newRequestCommand(load, "skip"),
		newSuspendCommand(load), newUnsuspendCommand(load), newReleaseCommand(load),
	}
	for _, command := range commands {
		command.SilenceUsage = true
		// The program prints the errors: Main, or cobra for other programs. They must not print an
		// outcome: the answer has said it.
		run := command.RunE
		command.RunE = func(command *cobra.Command, arguments []string) error {
			err := withAdvice(run(command, arguments))
			var ended *exitError
			command.SilenceErrors = errors.As(err, &ended)
			return err
		}
		command.SetUsageFunc(writeUsage)
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if !isConnection(flag) {
				flag.Annotations = map[string][]string{groupAnnotation: flag.Annotations[groupAnnotation], withoutVariable: nil}
			}
		})
		command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	}
	return commands
}

// question holds the flags of the commands that look at a cluster.
type question struct {
	load       Load
	connection connection
	namespace  string
	settings   settings.Settings // before the program changes them
	output     string
	called     inspect.CommandLine
}

// newQuestion returns a command about a cluster.
func newQuestion(load Load, use, short, long, example string, run func(q *question, command *cobra.Command, arguments []string) error) *cobra.Command {
	q := &question{load: load, settings: newFlags().settings}
	command := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := q.complete(command.Flags()); err != nil {
				return err
			}
			q.called = inspect.CommandLine{Pattern: launch.CalledAs(command), Flags: q.connection.arguments(command.Flags())}
			return run(q, command, arguments)
		},
	}
	command.ValidArgsFunction = q.completeArguments
	command.Flags().SortFlags = false
	defineGroup(command.Flags(), "Object", func(set *pflag.FlagSet) {
		set.StringVarP(&q.namespace, "namespace", "n", "", "the `namespace` (default: that of the kubeconfig)")
		set.StringVarP(&q.output, "output", "o", "", "write json or yaml instead of a text")
	})
	defineGroup(command.Flags(), "Connection", q.connection.define)
	return command
}

// describeNamespace replaces the help of --namespace, for commands with another default.
func describeNamespace(command *cobra.Command, usage string) {
	command.Flags().Lookup("namespace").Usage = usage
}

func (q *question) complete(set *pflag.FlagSet) error {
	if q.output != "" && q.output != "json" && q.output != "yaml" {
		return usageErrorf("--output is %q: use json or yaml", q.output)
	}
	var mistake error
	set.VisitAll(func(flag *pflag.Flag) {
		if isConnection(flag) && !flag.Changed && mistake == nil { // KOPF_NAMESPACE is the scope of the operator
			mistake = setFromEnvironment(set, flag, "run", environment)
		}
	})
	q.connection.complete(set)
	return mistake
}

// connect returns the cluster to look at, and the configuration for writing.
func (q *question) connect(ctx context.Context) (*inspect.Cluster, *rest.Config, error) {
	program, err := q.load(q.settings)
	if err != nil {
		return nil, nil, err
	}
	config, err := q.config(ctx)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := inspect.Connect(ctx, config, program)
	if err == nil {
		cluster.CommandLine = q.called
	}
	return cluster, config, err
}

// isConnection reports whether a flag selects the cluster.
func isConnection(flag *pflag.Flag) bool {
	group := flag.Annotations[groupAnnotation]
	return len(group) > 0 && group[0] == "Connection"
}

// config returns the configuration for writing, and sets the namespace.
func (q *question) config(ctx context.Context) (*rest.Config, error) {
	config, err := q.connection.connect(ctx)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.Burst = 0 // the API server limits its clients itself
	if q.namespace == "" {
		q.namespace, _, err = q.connection.clientConfig().Namespace()
	}
	return config, err
}

// target returns the object that the arguments name.
func (q *question) target(arguments []string) (inspect.Target, error) {
	t, _, err := inspect.ParseTarget(arguments)
	if err != nil {
		return t, &usageError{err}
	}
	t.Namespace = q.namespace
	return t, nil
}

// text is an answer.
type text interface {
	Text(inspect.Style) string
}

// write writes the answer.
func (q *question) write(out io.Writer, answer text) error {
	var data []byte
	var err error
	switch q.output {
	case "json":
		data, err = json.MarshalIndent(answer, "", "  ")
		if err == nil {
			data = append(data, '\n')
		}
	case "yaml":
		data, err = yaml.Marshal(answer)
	default:
		data = []byte(answer.Text(styleOf(out)))
	}
	if err == nil {
		_, err = out.Write(data)
	}
	return err
}

// styleOf returns the style of a terminal, or that of a pipe.
func styleOf(out io.Writer) inspect.Style {
	style := inspect.Style{Colors: supportsColor(out)}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			style.Width = min(width, helpWidth)
		}
	}
	return style
}

func newExplainCommand(load Load) *cobra.Command {
	var running runningFlags
	command := newQuestion(load, "explain KIND/NAME [flags]", "Explain what the handlers do with an object, and why",
		"Explain for each handler whether it is called for an object, waits, has ended, or is not for the\n"+
			"object, and which filter decides; who holds its deletion; and who pauses the operator.\n\n"+
			"It needs no running operator, calls no handlers, and changes nothing.",
		"  explain kopfexample/kopf-example-1\n  explain kex/kopf-example-1 -n default -o json",
		func(q *question, command *cobra.Command, arguments []string) error {
			if err := checkArguments(arguments, 2); err != nil {
				return err
			}
			cluster, _, err := q.connect(command.Context())
			if err != nil {
				return err
			}
			target, err := q.target(arguments)
			if err != nil {
				return err
			}
			replicas := &cluster.Settings.Replicas
			replicas.LeaseName = cmp.Or(running.leaseName, replicas.LeaseName)
			replicas.LeaseNamespace = cmp.Or(running.namespace, replicas.LeaseNamespace)
			answer, err := cluster.Explain(command.Context(), target)
			if err == nil {
				err = running.ask(command, q, cluster, target, answer)
			}
			if err != nil {
				return err
			}
			return q.write(command.OutOrStdout(), answer)
		})
	defineGroup(command.Flags(), "Running operator", func(set *pflag.FlagSet) {
		set.BoolVar(&running.running, "running", false, "also ask the leader, or the replica that holds the shard of the object, what it is doing now; it needs secure metrics")
		set.StringVar(&running.tokenFile, "token-file", "", "the `file` with a token that the operator accepts, as of kubectl create token")
		set.StringVar(&running.endpoint, "endpoint", "", "the `URL` of the metrics to ask, instead of finding the pod")
		set.StringVar(&running.namespace, "operator-namespace", "", "the `namespace` of the lease and of the pods (default: as in the settings, or that of the kubeconfig); the answer names the leader, or the holder of the shard")
		set.StringVar(&running.leaseName, "lease-name", "", "the `name` of the lease (default: as in the settings)")
	})
	return command
}

// runningFlags are the flags about a running operator.
type runningFlags struct {
	running                        bool
	endpoint, tokenFile, namespace string
	leaseName                      string
}

// ask adds to the answer what the leader, or the replica that holds the shard of the object, is doing.
func (r *runningFlags) ask(command *cobra.Command, q *question, cluster *inspect.Cluster, t inspect.Target, answer *inspect.Explanation) error {
	if !r.running {
		return nil
	}
	at, stop, err := r.reach(command, q, cluster, t)
	if err != nil {
		return err
	}
	defer stop()
	return cluster.AddNow(command.Context(), t, answer, at)
}

// reach returns the endpoint of the leader, or that of the replica that holds the shard of an object. The function ends the
// connection to it.
func (r *runningFlags) reach(command *cobra.Command, q *question, cluster *inspect.Cluster, t inspect.Target) (at inspect.Endpoint, stop func(), err error) {
	at.URL = r.endpoint
	at.Token, err = readToken(r.tokenFile)
	if err != nil || at.URL != "" {
		return at, func() {}, err
	}
	namespace, _, err := q.connection.clientConfig().Namespace()
	if err != nil {
		return at, nil, err
	}
	pod, err := cluster.ReplicaOf(command.Context(), t, cmp.Or(r.namespace, namespace))
	if err != nil {
		return at, nil, err
	}
	address, stop, err := launch.Forward(command.Context(), pod.Namespace, pod.Name, pod.Port, q.connection.arguments(command.Flags()))
	at.URL = "https://" + address
	return at, stop, err
}

// readToken reads the token of --token-file.
func readToken(file string) (string, error) {
	const needed = "--running needs --token-file with a token that the operator accepts: kubectl create token SERVICEACCOUNT > FILE"
	if file == "" {
		return "", usageErrorf(needed)
	}
	token, err := os.ReadFile(file)
	if err != nil {
		return "", usageErrorf(needed+" (%w)", err)
	}
	return strings.TrimSpace(string(token)), nil
}

// checkArguments returns a usage error if the arguments name no object, or are too many.
func checkArguments(arguments []string, most int) error {
	_, rest, err := inspect.ParseTarget(arguments)
	switch {
	case err != nil:
		return &usageError{err}
	case strings.Contains(arguments[0], "/") && len(rest) > most-2, len(arguments) > most:
		return usageErrorf("unexpected argument %q", arguments[len(arguments)-1])
	default:
		return nil
	}
}

package cli

import (
	"cmp"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/page"
)

func newPageCommand(load Load) *cobra.Command {
	var port uint16
	var requests bool
	var running runningFlags
	command := newQuestion(load, "page [flags]", "Show the objects and their handlers in a browser",
		"Serve a page on this machine, until the command is interrupted: the objects by their states, and for\n"+
			"each of them what explain says. It uses your kubeconfig and your permissions.\n\n"+
			"It needs no running operator, and calls no handlers. Without --requests, it changes nothing. Without\n"+
			"--namespace, it shows the objects in all namespaces. With --running, it shows what only the operator\n"+
			"knows, too.",
		"  page\n  page -n default --port 8000 --requests",
		func(q *question, command *cobra.Command, arguments []string) error {
			if err := rejectArguments(command, arguments); err != nil {
				return err
			}
			ctx := command.Context()
			namespace := q.namespace
			cluster, config, err := q.connect(ctx)
			if err != nil {
				return err
			}
			replicas := &cluster.Settings.Replicas
			replicas.LeaseName = cmp.Or(running.leaseName, replicas.LeaseName)
			options := page.Options{
				Name: cluster.Settings.Name, Cluster: cluster, Token: page.NewToken(), Namespace: namespace, LeaseName: running.leaseName,
				LeaseNamespace: cmp.Or(running.namespace, replicas.LeaseNamespace, q.namespace),
			}
			if running.running {
				at, stop, err := running.reach(command, q, cluster, inspect.Target{})
				if err != nil {
					return err
				}
				defer stop()
				options.Running = at
			}
			if requests {
				options.Writing = config
			}
			listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
			if err != nil {
				return fmt.Errorf("the page cannot be served: %w", err)
			}
			if _, err := fmt.Fprintf(command.OutOrStdout(), "The page is at %s\nInterrupt the command to end it.\n", page.Address(listener.Addr().String(), options.Token)); err != nil {
				return err
			}
			return page.New(options).Serve(ctx, listener)
		})
	describeNamespace(command, "show only the objects in this `namespace` (default: all)")
	_ = command.Flags().MarkHidden("output") // there is no other form
	defineGroup(command.Flags(), "Page", func(set *pflag.FlagSet) {
		set.Uint16Var(&port, "port", 0, "the `number` of the port on 127.0.0.1 (default: a free one)")
		set.BoolVar(&requests, "requests", false, "also offer requests to the operator: retry, rerun, skip, suspend, and unsuspend")
	})
	defineGroup(command.Flags(), "Running operator", func(set *pflag.FlagSet) {
		set.BoolVar(&running.running, "running", false, "also show what the leader is doing now; it needs secure metrics")
		set.StringVar(&running.tokenFile, "token-file", "", "the `file` with a token that the operator accepts, as of kubectl create token")
		set.StringVar(&running.endpoint, "endpoint", "", "the `URL` of the metrics to ask, instead of finding the pod")
		set.StringVar(&running.namespace, "operator-namespace", "", "the `namespace` of the leases and of the pods (default: as in the settings, or that of the kubeconfig)")
		set.StringVar(&running.leaseName, "lease-name", "", "the `name` of the lease of the operator (default: as in the settings)")
	})
	return command
}

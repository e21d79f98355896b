package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/cli/launch"
	"github.com/kopf-go/kopf/pkg/inspect"
)

func newShardsCommand(load Load) *cobra.Command {
	var lease, tokenFile string
	var running bool
	var endpoints []string
	command := newQuestion(load, "shards [flags]", "Show which replica handles which shard",
		"Show the leases of an operator with shards: how its replicas divide the objects, which replicas run,\n"+
			"who holds each shard, and which shards move to another replica.\n\n"+
			"It needs no running operator, and changes nothing.",
		"  shards -n operators\n  shards -n operators --running --token-file token",
		func(q *question, command *cobra.Command, arguments []string) error {
			if err := rejectArguments(command, arguments); err != nil {
				return err
			}
			ctx := command.Context()
			namespace := q.namespace
			cluster, _, err := q.connect(ctx)
			if err != nil {
				return err
			}
			list, err := cluster.Shards(ctx, lease, cmp.Or(namespace, cluster.Settings.Replicas.LeaseNamespace, q.namespace))
			if err == nil && running {
				err = askReplicas(ctx, q, command, cluster, list, tokenFile, endpoints)
			}
			if err != nil {
				return err
			}
			return q.write(command.OutOrStdout(), list)
		})
	describeNamespace(command, "the `namespace` of the leases and of the pods (default: as in the settings, or that of the kubeconfig)")
	defineGroup(command.Flags(), "Running operator", func(set *pflag.FlagSet) {
		set.StringVar(&lease, "lease-name", "", "the `name` of the lease of the operator (default: as in the settings)")
		set.BoolVar(&running, "running", false, "also ask the replicas how many objects are in their shards, and what keeps those that they give up; it needs secure metrics")
		set.StringVar(&tokenFile, "token-file", "", "the `file` with a token that the replicas accept, as of kubectl create token")
		set.StringArrayVar(&endpoints, "endpoint", nil, "the `URL` of the metrics of a replica, instead of finding the pods of all; can be repeated")
	})
	return command
}

// askReplicas asks the replicas of an operator what they do, in their pods unless there are endpoints.
func askReplicas(ctx context.Context, q *question, command *cobra.Command, cluster *inspect.Cluster, list *inspect.ShardList, tokenFile string, endpoints []string) error {
	token, err := readToken(tokenFile)
	if err != nil {
		return err
	}
	for _, endpoint := range endpoints {
		list.AskReplica(ctx, inspect.Endpoint{URL: endpoint, Token: token})
	}
	if len(endpoints) > 0 {
		return nil
	}
	for _, pod := range cluster.Pods(ctx, list) {
		address, stop, err := launch.Forward(ctx, pod.Namespace, pod.Name, pod.Port, q.connection.arguments(command.Flags()))
		if err != nil {
			return err
		}
		list.AskReplica(ctx, inspect.Endpoint{URL: "https://" + address, Token: token})
		stop()
	}
	return nil
}

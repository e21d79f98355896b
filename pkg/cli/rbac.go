package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/rbac"
)

// roleFlags are the flags of an operator that decide what it needs.
var roleFlags = []string{"peering", "standalone", "leader-elect", "shards", "shard-key", "lease-name", "lease-namespace", "metrics", "metrics-secure", "page"}

func newRBACCommand(load Load) *cobra.Command {
	operator := newFlags()
	var scope []string
	var account string
	command := newQuestion(load, "rbac [flags]", "Print the roles that the operator needs",
		"Print the roles that an operator with these handlers needs, as manifests: from the handlers,\n"+
			"kopf.Needs, the settings, and what the cluster serves now. Give it the flags with which the operator\n"+
			"will run. Each rule has its reason. What handlers do with a client is unknown unless kopf.Needs\n"+
			"declares it; --learn of a running operator observes it.",
		"  rbac --namespaces my-team -n operators --service-account my-operator --leader-elect\n  rbac | kubectl apply -f -",
		func(q *question, command *cobra.Command, arguments []string) error {
			if len(arguments) > 0 {
				return usageErrorf("unexpected argument %q", arguments[0])
			}
			if strings.Contains(account, "/") {
				return usageErrorf("--service-account is %q: use its name, and --namespace for its namespace", account)
			}
			q.settings = operator.settings
			cluster, _, err := q.connect(command.Context())
			if err != nil {
				return err
			}
			if len(scope) > 0 {
				cluster.Settings.Scope.Namespaces = scope
			}
			roles := cluster.Roles(q.namespace, rbac.Account{Namespace: q.namespace, Name: account})
			if q.output != "" { // otherwise, comments say it
				for _, problem := range roles.Problems {
					command.PrintErrln("Not derived:", problem)
				}
			}
			return q.write(command.OutOrStdout(), roles)
		})
	describeNamespace(command, "the `namespace` in which the operator runs (default: that of the kubeconfig)")
	defineGroup(command.Flags(), "Roles", func(set *pflag.FlagSet) {
		set.StringSliceVar(&scope, "namespaces", nil, "the `names` or patterns of the namespaces that the operator handles (default: as in the settings, or all)")
		set.StringVar(&account, "service-account", "", "the `name` of the account in the namespace of -n, to print bindings")
		all := pflag.NewFlagSet("", pflag.ContinueOnError)
		operator.define(all)
		for _, name := range roleFlags {
			set.AddFlag(all.Lookup(name))
		}
	})
	return command
}

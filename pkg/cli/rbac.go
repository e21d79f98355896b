package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/rbac"
)

// rolesCommand holds the flags of the command rbac.
type rolesCommand struct {
	operator *flags
	scope    []string
	account  string
}

func newRBACCommand(load Load) *cobra.Command {
	r := &rolesCommand{operator: newFlags()}
	command := newQuestion(load, "rbac [flags]", "Print the roles that the operator needs",
		"Print the roles that an operator with these handlers needs, as manifests: from the handlers,\n"+
			"kopf.Needs, the settings, and what the cluster serves now. Give it the flags with which the operator\n"+
			"will run. Each rule has its reason. What handlers do with a client is unknown unless kopf.Needs\n"+
			"declares it; --learn of a running operator observes it.",
		"  rbac --namespaces my-team -n operators --service-account my-operator --leader-elect\n  rbac | kubectl apply -f -",
		r.print)
	describeNamespace(command, "the `namespace` in which the operator runs (default: that of the kubeconfig)")
	defineGroup(command.Flags(), "Roles", r.define)
	return command
}

// roleFlags are the flags of an operator that decide what it needs.
var roleFlags = []string{"peering", "standalone", "leader-elect", "lease-name", "lease-namespace", "metrics", "metrics-secure"}

func (r *rolesCommand) define(set *pflag.FlagSet) {
	set.StringSliceVar(&r.scope, "namespaces", nil, "the `names` or patterns of the namespaces that the operator handles (default: as in the settings, or all)")
	set.StringVar(&r.account, "service-account", "", "the `name` of the account in the namespace of -n, to print bindings")
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	r.operator.define(all)
	for _, name := range roleFlags {
		set.AddFlag(all.Lookup(name))
	}
}

// print writes the roles.
func (r *rolesCommand) print(q *question, command *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return usageErrorf("unexpected argument %q", arguments[0])
	}
	if strings.Contains(r.account, "/") {
		return usageErrorf("--service-account is %q: use its name, and --namespace for its namespace", r.account)
	}
	q.settings = r.operator.settings
	cluster, _, err := q.connect(command.Context())
	if err != nil {
		return err
	}
	if len(r.scope) > 0 {
		cluster.Settings.Scope.Namespaces = r.scope
	}
	roles := cluster.Roles(q.namespace, rbac.Account{Namespace: q.namespace, Name: r.account})
	if q.output != "" { // otherwise, comments say it
		for _, problem := range roles.Problems {
			command.PrintErrln("Not derived:", problem)
		}
	}
	return q.write(command.OutOrStdout(), roles)
}

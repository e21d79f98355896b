package cli

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/cli/deployment"
	"github.com/kopf-go/kopf/pkg/cli/launch"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// manifestFlags are the flags of the command manifests.
type manifestFlags struct {
	deployment.Options

	crds      []string
	kustomize string
	helm      string
	olm       string
	samples   []string
	discover  bool
}

func newManifestsCommand(load Load) *cobra.Command {
	q := &question{load: load, settings: newFlags().settings}
	var given manifestFlags
	command := &cobra.Command{
		Use: "manifests [flags]", Short: "Print the manifests that deploy the operator",
		Long: "Print what deploys an operator with these handlers: the namespace, the service account with the\n" +
			"derived roles, roles for people, the deployment, and services. No cluster is asked: the resources\n" +
			"are those of --crds, those that every cluster has, and those that handlers name by group, version,\n" +
			"and plural.\n\n" +
			"The program is described as in its pods, with the variables POD_NAMESPACE and, for webhooks,\n" +
			"WEBHOOK_SERVICE and WEBHOOK_ADDRESS.",
		Example: "  manifests --crds config/crd --image registry.example.com/shops:v1 | kubectl apply -f -\n" +
			"  manifests --crds config/crd --with metrics,network-policy --kustomize config\n" +
			"  manifests --crds config/crd --image registry.example.com/shops:v1.2.3 --olm bundle",
		ValidArgsFunction: q.completeArguments,
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) > 0 {
				return usageErrorf("unexpected argument %q", arguments[0])
			}
			if given.olm != "" && (given.kustomize != "" || given.helm != "") {
				return usageErrorf("a bundle has other webhooks than a kustomization and a chart: write it by a call of its own")
			}
			if err := q.complete(command.Flags()); err != nil {
				return err
			}
			return given.run(command, q)
		},
	}
	command.Flags().SortFlags = false
	defineGroup(command.Flags(), "Deployment", given.define)
	defineGroup(command.Flags(), "Resources", func(set *pflag.FlagSet) {
		set.StringSliceVar(&given.crds, "crds", nil, "files or `folders` with the custom resource definitions of the operator; they are a part of the manifests")
		set.StringSliceVar(&given.samples, "samples", nil, "files or `folders` with objects, which are the examples in a bundle")
		set.BoolVar(&given.discover, "discover", false, "ask the cluster of the kubeconfig which resources it serves")
	})
	defineGroup(command.Flags(), "Connection", q.connection.define)
	return command
}

func (f *manifestFlags) define(set *pflag.FlagSet) {
	set.StringVar(&f.Name, "name", "", "the `name` of the objects, and the beginning of the names of others (default: settings.Name, or that of the program)")
	set.StringVarP(&f.Namespace, "namespace", "n", "", "the `namespace` in which the operator runs (default: the name with -system)")
	set.StringVar(&f.Image, "image", "", "the `image` (default: the name with :latest)")
	set.BoolVar(&f.Namespaced, "namespaced", false, "handle only the namespace in which the operator runs, which must exist")
	set.IntVar(&f.Replicas, "replicas", 2, "the `number` of pods")
	set.IntVar(&f.Shards, "shards", 0, "divide the objects into this `number` of shards, which the pods share, instead of electing a leader")
	set.BoolVar(&f.Standalone, "standalone", false, "ignore other operators")
	set.StringSliceVar(&f.Components, "with", nil, "add `components`: "+strings.Join(deployment.Components, ", "))
	set.StringVar(&f.kustomize, "kustomize", "", "write a kustomization with all components to this `folder`, instead of printing manifests")
	set.StringVar(&f.helm, "helm", "", "write a chart for Helm with all components to this `folder`, instead of printing manifests")
	set.StringVar(&f.olm, "olm", "", "write a bundle for the Operator Lifecycle Manager to this `folder`, instead of printing manifests; what people read is in about.yaml there, which the first call makes")
	set.StringVar(&f.Version, "version", "", "the `version` of the chart or of the bundle (default: that of the image, if it has one such as v1.2.3, or 0.1.0)")
}

// isWritten reports whether the manifests are written to files.
func (f *manifestFlags) isWritten() bool { return f.kustomize != "" || f.helm != "" || f.olm != "" }

// run prints or writes the manifests.
func (f *manifestFlags) run(command *cobra.Command, q *question) error {
	definitions, err := manifests.Require(f.crds...)
	if err != nil {
		return err
	}
	f.Definitions = definitions
	samples, err := manifests.Read(f.samples...)
	if err != nil {
		return err
	}
	f.Variables = strings.Fields(command.Root().Annotations[launch.VariablesAnnotation])
	program, err := f.describe(q)
	if err != nil {
		return err
	}
	var served discovery.Snapshot
	if f.discover {
		config, err := q.config(command.Context())
		if err != nil {
			return err
		}
		cluster, err := inspect.Connect(command.Context(), config, program)
		if err != nil {
			return err
		}
		served = cluster.Served()
	}
	known, err := deployment.Know(program, definitions, served)
	if err != nil {
		return err
	}
	d, err := deployment.New(program, known, f.Options)
	if err != nil {
		return &usageError{err}
	}
	for _, problem := range d.Problems() {
		command.PrintErrln("Not derived:", problem)
	}
	if f.kustomize != "" {
		err = d.Write(f.kustomize)
	}
	if f.helm != "" && err == nil {
		err = d.WriteChart(f.helm)
	}
	if f.olm != "" && err == nil {
		err = d.WriteBundle(f.olm, samples)
	}
	if f.isWritten() || err != nil {
		return err
	}
	text, err := d.Text()
	if err == nil {
		_, err = fmt.Fprint(command.OutOrStdout(), text)
	}
	return err
}

// describe returns the program as it is in its pods. It loads the program twice, because the variables of the pods have
// the name of the operator, which is in its settings.
func (f *manifestFlags) describe(q *question) (Program, error) {
	program, err := q.load(q.settings)
	if err != nil {
		return program, err
	}
	f.Name = cmp.Or(f.Name, deployment.NameFor(program.Settings, filepath.Base(os.Args[0])))
	f.Namespace = cmp.Or(f.Namespace, f.Name+"-system")
	f.Image = cmp.Or(f.Image, f.Name+":latest")
	f.Version = cmp.Or(strings.TrimPrefix(f.Version, "v"), deployment.VersionOf(f.Image), "0.1.0")
	f.IsBundle = f.olm != ""
	isCalled := len(program.Handlers.Admission()) > 0 || len(program.Conversions) > 0
	if isCalled && !f.Has("webhook") { // it does not start without
		f.Components = append(f.Components, "webhook")
	}
	if err := f.Validate(); err != nil {
		return program, &usageError{err}
	}
	variables := f.Environment(f.Components...)
	if f.kustomize != "" || f.helm != "" { // and all can be added later
		variables = f.Environment("webhook")
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if err := os.Setenv(name, variables[name]); err != nil {
			return program, err
		}
	}
	settings := q.settings
	f.Apply(&settings)
	return q.load(settings)
}

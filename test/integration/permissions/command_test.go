package permissions

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// What the command prints can be applied, in all formats.
func TestCommandPrintsManifests(t *testing.T) {
	t.Parallel()
	clustered := []string{"ClusterRole"}
	for name, test := range map[string]struct {
		arguments []string
		want      []string // kinds, with the namespaces of those that are in some
		rule      string   // the resources of a rule, if the flags lead to one
	}{
		"for the cluster":          {nil, clustered, "customresourcedefinitions"},
		"in namespaces":            {[]string{"--namespaces=a,b"}, []string{"Role a", "Role b"}, "kopfpeerings"},
		"in a pattern":             {[]string{"--namespaces=a-*"}, clustered, "namespaces"},
		"for an account":           {[]string{"--service-account=me"}, []string{"ClusterRole", "ClusterRoleBinding"}, ""},
		"in one for an account":    {[]string{"--namespaces=a", "--service-account=me"}, []string{"Role a", "RoleBinding a"}, ""},
		"with replicas":            {[]string{"--leader-elect", "--lease-name=l", "--lease-namespace=ls"}, []string{"ClusterRole", "Role ls"}, "leases"},
		"with replicas in the own": {[]string{"--leader-elect"}, []string{"ClusterRole", "Role system"}, "leases"},
		"with shards":              {[]string{"--shards=16", "--lease-namespace=ls"}, []string{"ClusterRole", "Role ls"}, "leases"},
		"with secure metrics":      {[]string{"--namespaces=a", "--metrics=:8443", "--metrics-secure"}, []string{"ClusterRole", "Role a"}, "tokenreviews"},
		"with another peering":     {[]string{"--namespaces=a", "--peering=mine"}, []string{"Role a"}, "kopfpeerings[mine]"},
	} {
		for _, format := range []string{"", "json", "yaml"} {
			t.Run(name+" as "+format, func(t *testing.T) {
				g := gomega.NewWithT(t)
				objects := decode(t, printRoles(t, append(test.arguments, "--namespace=system", "--output="+format)...))
				var got, resources []string
				for _, object := range objects {
					got = append(got, strings.TrimSpace(object.GetKind()+" "+object.GetNamespace()))
					resources = append(resources, resourcesOf(t, object)...)
					apply(t, object)
				}
				g.Expect(got).To(gomega.ConsistOf(test.want))
				g.Expect(test.rule == "" || slices.Contains(resources, test.rule)).To(gomega.BeTrue(), "%q", resources)
			})
		}
	}
}

func TestCommandRefusesMistakes(t *testing.T) {
	for name, arguments := range map[string][]string{
		"an account with a namespace": {"--service-account=a/b"}, "an argument": {"more"}, "a format": {"--output=text"}, "a flag": {"--leader"},
	} {
		t.Run(name, func(t *testing.T) {
			if text, err := tryPrintRoles(t, arguments...); err == nil || text != "" {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
}

func TestReasonsAreKept(t *testing.T) {
	g := gomega.NewWithT(t)
	text := printRoles(t)
	g.Expect(text).To(gomega.ContainSubstring("# The handled objects, with the operator's records on them: create (create)."))
	g.Expect(printRoles(t, "-o", "json")).To(gomega.ContainSubstring(`"kopf.dev/reasons": "The handled objects, with the operator's records on them: create (create).\n`))
}

// The command manifests asks the cluster only if it may. Then it knows what any selector is for.
func TestManifestsOfWhatTheClusterServes(t *testing.T) {
	g := gomega.NewWithT(t)
	t.Setenv("POD_NAMESPACE", "") // the command sets it
	path := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(path, cluster.KubeConfig(), 0o600)).To(gomega.Succeed())
	try := func(arguments ...string) (string, error) {
		registry := kopf.NewRegistry()
		registry.OnCreate(kopf.Resource("kopfexamples"), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("create"))
		commands := kopf.Commands(func(o *kopf.Options) { o.Registry = registry })
		command := commands[slices.IndexFunc(commands, func(c *cobra.Command) bool { return c.Name() == "manifests" })]
		var out bytes.Buffer
		command.SetOut(&out)
		command.SetErr(&out)
		command.SetArgs(append([]string{"--kubeconfig", path, "--name=shops"}, arguments...))
		err := command.ExecuteContext(t.Context())
		return out.String(), err
	}
	_, err := try()
	g.Expect(err).To(gomega.MatchError(gomega.And(gomega.ContainSubstring(`"kopfexamples"`), gomega.ContainSubstring("--discover"))))
	text, err := try("--discover")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(text).To(gomega.And(gomega.ContainSubstring("resources: [kopfexamples]"), gomega.ContainSubstring("name: shops-kopfexample-viewer")))
}

func printRoles(t *testing.T, arguments ...string) string {
	t.Helper()
	text, err := tryPrintRoles(t, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// tryPrintRoles runs the command of an operator.
func tryPrintRoles(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, cluster.KubeConfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	registry := kopf.NewRegistry()
	registry.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("create"))
	commands := kopf.Commands(func(o *kopf.Options) { o.Registry = registry })
	command := commands[slices.IndexFunc(commands, func(c *cobra.Command) bool { return c.Name() == "rbac" })]
	var out, log bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&log)
	command.SetArgs(append([]string{"--kubeconfig", path}, arguments...))
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// decode returns the objects of manifests, or those of a list.
func decode(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); err == io.EOF { //nolint:errorlint // of decoders
			return all
		} else if err != nil {
			t.Fatal(err, text)
		}
		if !object.IsList() {
			all = append(all, object)
			continue
		}
		if err := object.EachListItem(func(item runtime.Object) error {
			all = append(all, item.(*unstructured.Unstructured)) //nolint:forcetypeassert // items are like their list
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// resourcesOf returns the resources of the rules, with the name that a rule is for.
func resourcesOf(t *testing.T, object *unstructured.Unstructured) (found []string) {
	t.Helper()
	var role rbacv1.ClusterRole
	if strings.HasSuffix(object.GetKind(), "Binding") {
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &role, true); err != nil {
		t.Fatal(err)
	}
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			found = append(found, resource)
			for _, name := range rule.ResourceNames {
				found = append(found, resource+"["+name+"]")
			}
		}
	}
	return found
}

// apply applies an object like kubectl, without storing it. The namespaces do not exist.
func apply(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if object.GetNamespace() != "" {
		object.SetNamespace("default")
	}
	err := cluster.Client().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"), client.DryRunAll)
	if err != nil {
		t.Error(err)
	}
}

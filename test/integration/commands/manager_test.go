package commands

import (
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newSite creates an object of the kubebuilder project.
func newSite(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"message": "Hello"}}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "web.example.com", Version: "v1", Kind: "Site"})
	object.SetNamespace(namespace)
	object.SetName(name)
	gomega.NewWithT(t).Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	return object
}

// A manager that has its own command line says what is wrong, and exits as other operators do.
func testManagerWithCommands(t *testing.T, p programs) {
	namespace := cluster.Namespace(t)
	newSite(t, namespace, "one")
	config := kubeconfig(t)
	for name, test := range map[string]struct {
		arguments []string
		code      int
		out, log  string
	}{
		"a mistake":         {[]string{"explain"}, 2, "^$", "^Error: no object is given: .*\n$"},
		"a wrong flag":      {[]string{"plan", "--nonsense"}, 2, "^$", "^Error: unknown flag: --nonsense\n$"},
		"an absent object":  {[]string{"explain", "site/absent"}, 1, "^$", "^Error: there is no object sites.web.example.com/absent in .*\n$"},
		"an absent kind":    {[]string{"release", "nonsense"}, 1, "^$", "^Error: .*nonsense.* selects nothing in this cluster.*\n$"},
		"an unseen manager": {[]string{"release", "sites", "-n", namespace}, 1, "^$", `^Error: it is unknown whether the operator runs, .*: there is no lease "sites.web.example.com"; it ignores peerings .*--operator-stopped.*` + "\n$"},
		"a plan":            {[]string{"plan", "-n", namespace}, 0, "1 creation", "^$"},
		"a plan of changes": {[]string{"plan", "-n", namespace, "--exit-code"}, 3, "1 creation", "^$"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			run := start(t, []string{"KUBECONFIG=" + config, "ENABLE_WEBHOOKS=false"}, p.manager, test.arguments...)
			run.ends(test.code)
			g.Expect(run.out()).To(gomega.MatchRegexp(test.out))
			g.Expect(run.log()).To(gomega.MatchRegexp(test.log))
		})
	}
}

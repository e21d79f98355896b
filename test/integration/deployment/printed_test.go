package deployment

import (
	"bytes"
	"maps"
	"os/exec"
	"slices"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/test/audit"
)

// printed returns what the command manifests of a program prints, with the definitions of the example.
func printed(t *testing.T, program string, arguments ...string) []*unstructured.Unstructured {
	t.Helper()
	arguments = append([]string{"manifests", "--crds", "config/crd/kopf.dev,config/crd/example"}, arguments...)
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = root(t)
	command.Env = []string{"KUBECONFIG=/nonexistent"} // no cluster is asked
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil || problems.Len() > 0 {
		t.Fatalf("%q: %v\n%s", arguments, err, &problems)
	}
	return objects(t, output)
}

// byName returns objects by their kinds, namespaces, and names.
func byName(all []*unstructured.Unstructured) map[string]map[string]any {
	found := map[string]map[string]any{}
	for _, object := range all {
		found[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = object.Object
	}
	return found
}

// The text of all manifests and the kustomization are two forms of the same.
func TestPrintedManifestsAreThoseOfTheKustomization(t *testing.T) {
	program := build(t)
	for name, test := range map[string]struct{ components, flags []string }{
		"without components": {nil, nil},
		"with all that are needed here": {
			[]string{"metrics", "webhook", "page", "network-policy"}, []string{"--with=metrics,webhook,page,network-policy"},
		},
		"with those of other operators": {
			[]string{"metrics", "webhook", "page", "network-policy", "prometheus", "certmanager"}, []string{"--with=metrics,webhook,page,network-policy,prometheus,certmanager"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			want := byName(manifests(t, withComponents(t, test.components...)))
			got := byName(printed(t, program, append(test.flags, "--namespace=kopf-system", "--image=registry.example.com/kopf-manager:latest")...))
			g.Expect(slices.Sorted(maps.Keys(got))).To(gomega.Equal(slices.Sorted(maps.Keys(want))))
			for object := range want {
				g.Expect(got[object]).To(gomega.Equal(want[object]), object)
			}
		})
	}
	t.Run("in a namespace", func(t *testing.T) {
		got := byName(printed(t, program, "--namespaced", "--namespace=my-team", "--image=registry.example.com/kopf-manager:latest"))
		gomega.NewWithT(t).Expect(got).To(gomega.Equal(byName(manifests(t, "config/namespaced"))))
	})
}

// build builds the manager.
func build(t *testing.T) (program string) {
	t.Helper()
	program = t.TempDir() + "/manager"
	command := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/manager") //nolint:gosec // no input from outside
	command.Dir = root(t)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return program
}

// unusedWithShards are permissions that a short life with shards does not use.
var unusedWithShards = map[audit.Use]audit.Elsewhere{
	{For: "customresourcedefinitions", Verb: "list"}: streamed,
	{For: "configmaps", Verb: "list"}:                streamed,
	{For: "kopfexamples", Verb: "list"}:              streamed,
	{For: "leases", Verb: "list"}:                    streamed,
	{For: "configmaps", Verb: "delete"}:              elsewhere[audit.Use{For: "configmaps", Verb: "delete"}],
}

func TestOtherTestsUseTheRestOfPrintedRoles(t *testing.T) { audit.CheckTests(t, unusedWithShards) }

// The printed manifests are all that an operator needs: applied to a cluster, its replicas share the objects under exactly
// these roles. Deleted, nothing is left.
func TestPrintedManifestsDeploy(t *testing.T) {
	w := newWorld(t)
	all := printed(t, w.program, "--namespace=stores", "--name=stores", "--shards=4", "--standalone", "--image=registry.example.com/stores:v1")
	o := deploy(t, w, all, nil)
	o.handles(sample(t, "default"))
	o.updates()
	o.restores()
	o.Expect(o.Client().Delete(t.Context(), o.object.DeepCopy())).To(gomega.Succeed())
	o.Eventually(o.Exists(o.object)).Should(gomega.BeFalse())
	for _, p := range o.pods {
		p.stop()
	}

	requests := o.journal.Of(t, o.account())
	o.Expect(audit.Refused(requests)).To(gomega.BeEmpty())
	grants := slices.DeleteFunc(audit.Grants(t, all), func(g audit.Grant) bool { return g.User != o.account() })
	o.Expect(audit.Unused(grants, requests, unusedWithShards)).To(gomega.BeEmpty())
	t.Logf("%d requests, none of them refused", len(requests))

	for _, object := range all {
		if object.GetKind() == "Namespace" {
			continue // no controller empties it here
		}
		o.Expect(o.Client().Delete(t.Context(), object.DeepCopy())).To(gomega.Succeed())
		o.Eventually(o.Exists(object)).Should(gomega.BeFalse(), "%s %s", object.GetKind(), object.GetName())
	}
}

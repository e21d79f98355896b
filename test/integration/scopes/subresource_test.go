package scopes

import (
	"context"
	"net/http"
	"testing"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// definitionOf returns the definition of the resource moves.
func definitionOf(group string, subresource bool) *apiextensionsv1.CustomResourceDefinition {
	crd := testenv.Definition(group, "moves", "Move", "v1")
	if subresource {
		crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	return crd
}

// redefine changes the definition, and waits until the API server follows it.
func redefine(t *testing.T, g *gomega.WithT, object *unstructured.Unstructured, group string, subresource bool) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(admin(t).Get(t.Context(), client.ObjectKey{Name: "moves." + group}, crd)).To(gomega.Succeed())
	crd.Spec = definitionOf(group, subresource).Spec
	g.Expect(admin(t).Update(t.Context(), crd)).To(gomega.Succeed())
	g.Eventually(func() bool {
		nothing := client.RawPatch("application/merge-patch+json", []byte("{}"))
		return cluster.Client().Status().Patch(t.Context(), object.DeepCopy(), nothing, client.DryRunAll) == nil
	}).Should(gomega.Equal(subresource))
}

// The result of a handler is stored, and the handler is not called again, if the status
// becomes a subresource while it runs, or stops being one.
func TestStatusSubresourceComesOrGoesWhileAHandlerRuns(t *testing.T) {
	t.Parallel()
	for name, comes := range map[string]bool{"it comes": true, "it goes": false} {
		for scanning, disabled := range map[string]bool{"and is discovered": false, "and is not discovered": true} {
			t.Run(name+" "+scanning, func(t *testing.T) {
				t.Parallel()
				g, calls, logs, registry, in := gomega.NewWithT(t), &calls{}, &calls{}, kopf.NewRegistry(), cluster.Namespace(t)
				group, running, finish := in+".example.com", make(chan string, 2), make(chan struct{})
				g.Expect(admin(t).Create(t.Context(), definitionOf(group, !comes))).To(gomega.Succeed())
				registry.OnCreate(kopf.Resource(group, "moves"), func(ctx context.Context, c *kopf.Change) error {
					calls.note("%s", c.Name())
					running <- c.Name()
					select {
					case <-finish:
					case <-ctx.Done():
					}
					c.Patch().Set("moved", "spec", "phase")
					c.SetResult("moved")
					return nil
				}, kopf.ID("create"))
				one, two := objectOf(group, "Move", in, "one"), objectOf(group, "Move", in, "two")
				create(t, g, one) // the operator finds the resource at its start
				config := cluster.Config()
				requests := testenv.Count(config)
				operators.Start(t, config, in, registry, func(o *kopf.Options) {
					o.Logger, o.Settings.Scanning.Disabled = logs.logger(), disabled
				})
				g.Eventually(running).Should(gomega.Receive(gomega.Equal("one")))
				redefine(t, g, one, group, comes)
				if !disabled {
					g.Eventually(func() int { return logs.with("A resource is not watched anymore.") }).Should(gomega.Equal(1))
				}
				close(finish)
				moved := gomega.And(testenv.HavePath("status.create", "moved"), testenv.HavePath("spec.phase", "moved"))
				g.Eventually(cluster.Current(one)).Should(moved)
				create(t, g, two)
				g.Eventually(cluster.Current(two)).Should(moved)
				g.Consistently(calls.all, "500ms").Should(gomega.Equal([]string{"one", "two"}), "%v", logs.all())
				failed := 0
				for _, request := range requests.Requests() {
					if request.Resource == "moves" && request.Method == http.MethodPatch && request.Status == http.StatusNotFound {
						failed++
					}
				}
				g.Expect(failed).To(gomega.Equal(map[bool]int{true: 0, false: 1}[comes]), "it is learned once: %s", requests)
			})
		}
	}
}

package ensure

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// A function can return the definition of a kind together with objects of it. A kind without a
// definition holds up no other child.
func TestKindsThatAreNotServed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	gadgets := schema.GroupVersionKind{Group: "ensured.example.com", Version: "v1", Kind: "Gadget"}
	monitors := schema.GroupVersionKind{Group: "monitoring.example.com", Version: "v1", Kind: "Monitor"}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(testenv.Definition(gadgets.Group, "gadgets", gadgets.Kind, gadgets.Version))
	b.Expect(err).NotTo(gomega.HaveOccurred())
	definition := &unstructured.Unstructured{Object: content}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")

	b.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		all := []client.Object{object(gadgets, "", c.Name(), nil), object(configMaps, "", c.Name(), nil), definition}
		if monitored, _ := c.Spec().Bool("monitored"); monitored {
			all = append(all, object(monitors, "", c.Name(), nil))
		}
		return all, nil
	}, kopf.ID("children"), kopf.Backoff(time.Second))
	b.start()
	shop := b.shop("one", map[string]any{"monitored": true})
	gadget := b.of(gadgets, "one")
	b.expectChild(gadget, beOurs(), testenv.HavePath("metadata.ownerReferences", gomega.HaveLen(1)))
	b.expectChild(b.of(configMaps, "one"), beOurs())
	b.Eventually(b.logged("Monitor.monitoring.example.com "+b.namespace+"/one", "does not serve the kind Monitor.monitoring.example.com in the version v1", "install its definition")).ShouldNot(gomega.BeEmpty(), b.story)
	b.Expect(b.logged("Gadget", "the child is applied after its definition")()).NotTo(gomega.BeEmpty(), b.story)

	b.patch(shop, `{"spec":{"monitored":false}}`)
	b.expectHandled(shop)
	b.remove(gadget)
	b.expectChild(gadget, beOurs()) // its kind is watched
}

package health

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// childOf returns a child of a kind with the name and the namespace of its parent.
func childOf(kind schema.GroupVersionKind, parent client.Object, fields map[string]any) *unstructured.Unstructured {
	child := &unstructured.Unstructured{Object: fields}
	child.SetGroupVersionKind(kind)
	child.SetNamespace(parent.GetNamespace())
	child.SetName(parent.GetName())
	return child
}

func TestMetricsCountChildren(t *testing.T) {
	t.Parallel()
	g, registry := gomega.NewWithT(t), kopf.NewRegistry()
	configMap, service := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	parent := testenv.NewObject("KopfExample", cluster.Namespace(t), "one", map[string]any{"theme": "dark", "port": int64(80)})
	of := parent.DeepCopy() // its creation writes to the parent, and the handler reads
	registry.Ensure(kopf.Resource("kopf.dev", "v1", "kopfexamples"), func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		theme, _ := c.Spec().String("theme")
		all := []client.Object{childOf(configMap, of, map[string]any{"data": map[string]any{"theme": theme}})}
		if port, found := c.Spec().Int64("port"); found {
			all = append(all, childOf(service, of, map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": port}}}}))
		}
		return all, nil
	}, kopf.ID("children"))
	operators.Start(t, cluster.Config(), parent.GetNamespace(), registry, func(o *kopf.Options) { o.Settings.Name = t.Name() })
	writes := func(operation string) string {
		return "kopf_child_writes_total handler=children operation=" + operation + " resource=" + resource
	}
	children := func(state string) string {
		return "kopf_children handler=children resource=" + resource + " state=" + state
	}
	change := func(obj *unstructured.Unstructured, merge string) {
		t.Helper()
		g.Expect(cluster.Client().Patch(t.Context(), obj.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(merge)), client.FieldOwner("kubectl"))).To(gomega.Succeed())
	}
	expect := func(want map[string]float64) {
		t.Helper()
		for text, value := range want {
			g.Eventually(series(t.Name())).Should(gomega.HaveKeyWithValue(text, value), text)
		}
	}
	expect(map[string]float64{writes("created"): 0, writes("changed"): 0, writes("restored"): 0, writes("deleted"): 0}) // the first one must be an increase

	g.Expect(cluster.Client().Create(t.Context(), parent)).To(gomega.Succeed())
	expect(map[string]float64{writes("created"): 2, children("ready"): 2, children("progressing"): 0, children("failed"): 0})
	change(parent, `{"spec":{"theme":"light"}}`)
	expect(map[string]float64{writes("changed"): 1})
	change(childOf(configMap, parent, map[string]any{}), `{"data":{"theme":"red"}}`)
	expect(map[string]float64{writes("restored"): 1})
	change(parent, `{"spec":{"port":null}}`)
	expect(map[string]float64{writes("deleted"): 1, children("ready"): 1})
	expect(map[string]float64{ // and nothing else was counted
		writes("created"): 2, writes("changed"): 1, writes("restored"): 1, writes("deleted"): 1,
		children("ready"): 1, "kopf_children_contended handler=children resource=" + resource: 0,
	})

	for range 5 { // together with the one above, it is one more than the operator tolerates
		change(childOf(configMap, parent, map[string]any{}), `{"data":{"theme":"red"}}`)
		g.Eventually(cluster.Current(childOf(configMap, parent, map[string]any{}))).Should(testenv.HavePath("data.theme", "light"))
	}
	expect(map[string]float64{"kopf_children_contended handler=children resource=" + resource: 1, writes("restored"): 6})
	change(parent, `{"spec":{"port":0}}`) // the server refuses it
	failed := "kopf_handler_attempts_total handler=children kind=update outcome=retried resource=" + resource
	g.Eventually(series(t.Name())).Should(gomega.HaveKeyWithValue(failed, 1.0))
	expect(map[string]float64{writes("created"): 2})
}

package ensure

import (
	"context"
	"slices"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// The API server counts the changes of a spec in metadata.generation, but only for some kinds. Metacontroller compared
// that number to find changes of the children that it had applied, and repaired none of the others
// (https://github.com/metacontroller/metacontroller/issues/1177). These are the children of that report, with a custom
// resource in place of a certificate.
func TestKindsWithoutAGenerationAreRestored(t *testing.T) {
	t.Parallel()
	var (
		accounts    = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
		autoscalers = schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
		custom      = schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "EphemeralVolumeClaim"}
	)
	type mapping = map[string]any
	app := mapping{"app": "one"}
	template := mapping{"metadata": mapping{"labels": app}, "spec": mapping{"containers": []any{mapping{"name": "web", "image": "shop:1"}}}}
	ports := []any{mapping{"name": "http", "port": int64(80), "protocol": "TCP", "targetPort": int64(8080)}}
	claim := mapping{"accessModes": []any{"ReadWriteOnce"}, "resources": mapping{"requests": mapping{"storage": "1Gi"}}}
	scaled := mapping{"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"}
	children := []struct {
		kind    schema.GroupVersionKind
		content mapping
		merge   string // of another client
		path    string
		want    any
	}{
		{services, mapping{"spec": mapping{"type": "LoadBalancer", "selector": app, "ports": ports}}, `{"spec": {"type": "ClusterIP"}}`, "spec.type", "LoadBalancer"},
		{configMaps, mapping{"data": mapping{"theme": "dark"}}, `{"data": {"theme": "light"}}`, "data.theme", "dark"},
		{secrets, mapping{"data": mapping{"password": "c2VzYW1l"}}, `{"data": {"password": "b3BlbiE="}}`, "data.password", "c2VzYW1l"},
		{accounts, mapping{"automountServiceAccountToken": false}, `{"automountServiceAccountToken": true}`, "automountServiceAccountToken", false},
		{autoscalers, mapping{"spec": mapping{"maxReplicas": int64(3), "scaleTargetRef": scaled}}, `{"spec": {"maxReplicas": 9}}`, "spec.maxReplicas", int64(3)},
		{claims, mapping{"metadata": mapping{"labels": app}, "spec": claim}, `{"metadata": {"labels": {"app": "two"}}}`, "metadata.labels.app", "one"},
		{deployments, mapping{"spec": mapping{"replicas": int64(1), "selector": mapping{"matchLabels": app}, "template": template}}, `{"spec": {"replicas": 5}}`, "spec.replicas", int64(1)},
		{budgets, mapping{"spec": mapping{"minAvailable": int64(1), "selector": mapping{"matchLabels": app}}}, `{"spec": {"minAvailable": 2}}`, "spec.minAvailable", int64(1)},
		{custom, mapping{"spec": mapping{"size": "1G"}}, `{"spec": {"size": "2G"}}`, "spec.size", "1G"},
	}
	b := newBench(t)
	b.Ensure(shops, func(_ context.Context, c *kopf.Change) (all []client.Object, err error) {
		for _, child := range children {
			all = append(all, object(child.kind, c.Namespace(), c.Name(), (&unstructured.Unstructured{Object: child.content}).DeepCopy().Object))
		}
		return all, nil
	}, kopf.ID("children"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	b.expectRest()

	// Others change each of them again and again, also after a repair.
	for range 2 {
		b.requests.Reset()
		for _, child := range children {
			before := b.current(b.of(child.kind, "one"))
			b.patch(b.of(child.kind, "one"), child.merge)
			b.expectChild(b.of(child.kind, "one"), testenv.HavePath(child.path, child.want),
				testenv.HavePath("metadata.resourceVersion", gomega.Not(gomega.Equal(before.GetResourceVersion()))))
		}
		b.expectWrites(0, len(children))
	}
	b.Expect(b.current(shop).GetResourceVersion()).To(gomega.Equal(shop.GetResourceVersion()), "nothing is written to the parent")

	without := []string{}
	for _, child := range children {
		if b.current(b.of(child.kind, "one")).GetGeneration() == 0 {
			without = append(without, child.kind.Kind)
		}
	}
	slices.Sort(without)
	b.Expect(without).To(gomega.ContainElements("ConfigMap", "PersistentVolumeClaim", "Secret", "Service", "ServiceAccount"), "the test needs such kinds")
	t.Log("kinds without a generation:", without)
}

package ensure

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// The API server makes serviceAccount a copy of serviceAccountName, which it fills itself at first. So what others
// change there must be restored, and another value that the function returns must have an effect.
func TestServiceAccountOfPodsIsThatOfTheFunction(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	declare := func(r *kopf.Registry) {
		r.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
			account, _ := c.Spec().String("account")
			app := map[string]any{"app": c.Name()}
			return []client.Object{object(deployments, "", c.Name(), map[string]any{"spec": map[string]any{
				"selector": map[string]any{"matchLabels": app},
				"template": map[string]any{"metadata": map[string]any{"labels": app}, "spec": map[string]any{
					"serviceAccount": account, "containers": []any{map[string]any{"name": "web", "image": "shop:1"}},
				}},
			}})}, nil
		}, kopf.ID("children"))
	}
	declare(b.Registry)
	operator := b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"account": "first"}))
	deployment := b.of(deployments, "one")
	accounts := func(want string) gomega.OmegaMatcher {
		return gomega.And(testenv.HavePath("spec.template.spec.serviceAccountName", want), testenv.HavePath("spec.template.spec.serviceAccount", want))
	}
	b.expectChild(deployment, accounts("first"))

	b.patch(deployment, `{"spec":{"template":{"spec":{"serviceAccountName":"theirs"}}}}`)
	b.expectChild(deployment, accounts("first"))
	b.patch(deployment, `{"spec":{"template":{"spec":{"serviceAccountName":null,"serviceAccount":"theirs"}}}}`)
	b.expectChild(deployment, accounts("first"))

	b.patch(shop, `{"spec":{"account":"second"}}`)
	b.expectChild(deployment, accounts("second"))
	b.expectRest()
	b.requests.Reset()
	b.restart(operator, declare)
	b.expectWrites(0, 0)
}

// The API server adds tolerations to those of a pod, and an expression to its label selector, and lets no client remove
// them. What others change elsewhere is restored nevertheless, also after a decision.
func TestPodsAreRestoredWithWhatTheServerHasAdded(t *testing.T) {
	t.Parallel()
	pods := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	b, notes := newBench(t), &told{}
	declare := func(r *kopf.Registry) {
		r.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
			app := map[string]any{"app": c.Name()}
			return []client.Object{object(pods, "", c.Name(), map[string]any{
				"metadata": map[string]any{"labels": app},
				"spec": map[string]any{
					"containers":  []any{map[string]any{"name": "web", "image": "shop:1", "ports": []any{}}},
					"tolerations": []any{map[string]any{"key": "shop", "operator": "Exists"}},
					"topologySpreadConstraints": []any{map[string]any{
						"topologyKey": "zone", "maxSkew": int64(1), "whenUnsatisfiable": "DoNotSchedule",
						"labelSelector": map[string]any{"matchLabels": map[string]any{"team": "x"}}, "matchLabelKeys": []any{"app"},
					}},
				},
			})}, nil
		}, kopf.ID("children"))
		r.OnDrift(shops, notes.deciding(restoring), kopf.ID("drift"))
	}
	declare(b.Registry)
	operator := b.start()
	b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	pod := b.of(pods, "one")
	b.expectChild(pod, testenv.HavePath("spec.tolerations", gomega.HaveLen(3)))
	spec := b.current(pod).Object["spec"]

	b.requests.Reset()
	operator = b.restart(operator, declare)
	b.expectWrites(0, 0)
	edit := func() {
		b.as("other", pod, `{"spec":{"containers":[{"name":"web","image":"shop:2"}]},"metadata":{"labels":{"app":"theirs"}}}`)
	}
	edit()
	b.expectChild(pod, testenv.HavePath("spec", spec), testenv.HavePath("metadata.labels.app", "one"))
	b.Eventually(notes.take).Should(gomega.HaveExactElements("Pod metadata.labels.app (by other), spec.containers[name=web].image (by other)"), b.story)

	operator.Stop()
	edit()
	b.restart(operator, declare)
	b.expectChild(pod, testenv.HavePath("spec", spec), testenv.HavePath("metadata.labels.app", "one"))
}

package ensure

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// wantedIn returns a function for the child of a kind, whose spec is a text in the parent.
func wantedIn(kind schema.GroupVersionKind) func(context.Context, *kopf.Change) ([]client.Object, error) {
	return func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		text, _ := c.Spec().String("child")
		spec := map[string]any{}
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			return nil, kopf.Permanent(err)
		}
		u := object(kind, c.Namespace(), c.Name(), nil)
		content, err := json.Marshal(map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": map[string]any{"name": c.Name()}, "spec": spec})
		if err != nil {
			return nil, err
		}
		return []client.Object{u}, u.UnmarshalJSON(content)
	}
}

// deployment returns the spec of a deployment with a strategy and the variables of its container.
func deployment(strategy, env string) string {
	return `{` + strategy + `"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"log","image":"y"},{"name":"web","image":"x","env":[` + env + `]}]}}}`
}

// podWith returns the spec of a deployment whose pod has some fields.
func podWith(fields string) string {
	return `{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{` + fields + `"containers":[{"name":"web","image":"x"}]}}}`
}

// What others have set beside what is wanted can keep the API server from accepting that. It is removed
// together with the change, and the child comes to rest as the function says.
func TestWhatBlocksAChildIsRemoved(t *testing.T) {
	t.Parallel()
	recreate, reference := `"strategy":{"type":"Recreate"},`, `{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}`
	tests := map[string]struct {
		kind         schema.GroupVersionKind
		wanted       string
		others       string // a merge patch
		later        string // what is wanted then; empty: the same
		removed      string
		path, expect string
	}{
		"the other member of a union": {
			deployments, deployment("", `{"name":"B","value":"2"},{"name":"A","value":"1"}`),
			`{"spec":` + deployment("", `{"name":"B","value":"2"},`+reference) + `}`, "",
			"spec.template.spec.containers[name=web].env[name=A].valueFrom",
			"env", `[{"name":"B","value":"2"},{"name":"A","value":"1"}]`,
		},
		"a default that belongs to no manager": {
			deployments, deployment("", `{"name":"A","value":"1"}`), "", deployment(recreate, `{"name":"A","value":"1"}`),
			"spec.strategy.rollingUpdate", "strategy", `{"type":"Recreate"}`,
		},
		"what belongs to another strategy": {
			deployments, deployment(recreate, `{"name":"A","value":"1"}`), `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":2}}}}`, "",
			"spec.strategy.rollingUpdate", "strategy", `{"type":"Recreate"}`,
		},
		"what is left of an item that is not wanted anymore": {
			services, `{"ports":[{"name":"http","port":80},{"name":"more","port":8001}]}`,
			`{"spec":{"ports":[{"name":"other","port":8001}]}}`, `{"ports":[{"name":"http","port":80}]}`,
			"", "ports", `[{"name":"http","port":80,"protocol":"TCP","targetPort":80}]`,
		},
		"an item in the place of ours": {
			services, `{"ports":[{"port":80}]}`, `{"spec":{"ports":[{"port":81}]}}`, "",
			"spec.ports[port=81,protocol=TCP]", "ports", `[{"port":80,"protocol":"TCP","targetPort":80}]`,
		},
		"an item in the place of ours, with its name": {
			services, `{"ports":[{"name":"http","port":80},{"name":"more","port":8080}]}`, `{"spec":{"ports":[{"name":"http","port":81},{"name":"more","port":8080}]}}`, "",
			"spec.ports[port=81,protocol=TCP]", "ports", `[{"name":"http","port":80,"protocol":"TCP","targetPort":80},{"name":"more","port":8080,"protocol":"TCP","targetPort":8080}]`,
		},
		"the other member of a union that the refusal does not name": {
			budgets, `{"selector":{"matchLabels":{"a":"b"}},"maxUnavailable":1}`,
			`{"spec":{"maxUnavailable":null,"minAvailable":2,"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`, "",
			`["spec.minAvailable"]`, "", `{"selector":{"matchLabels":{"a":"b"}},"maxUnavailable":1,"unhealthyPodEvictionPolicy":"AlwaysAllow"}`,
		},
		"a field that excludes the one that the refusal names": {
			deployments, podWith(`"hostnameOverride":"a",`), `{"spec":{"replicas":3,"template":{"spec":{"hostnameOverride":null,"hostNetwork":true}}}}`, "",
			`["spec.template.spec.hostNetwork"]`, "replicas", `3`,
		},
		"a field that excludes one further down": {
			deployments, podWith(`"securityContext":{"windowsOptions":{"runAsUserName":"a"}},`),
			`{"spec":{"replicas":3,"template":{"spec":{"securityContext":null,"os":{"name":"linux"}}}}}`, "",
			`["spec.template.spec.os"]`, "replicas", `3`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Ensure(shops, wantedIn(test.kind), kopf.ID("children"))
			operator := b.start()
			shop := b.expectHandled(b.shop("one", map[string]any{"child": test.wanted}))
			child := b.of(test.kind, "one")
			if test.others != "" {
				b.as("other", child, test.others)
				b.expectRest()
			}
			if test.later != "" {
				b.Expect(cluster.Client().Patch(t.Context(), shop.DeepCopy(), client.RawPatch("application/merge-patch+json", mergeOf(t, test.later)))).To(gomega.Succeed())
			}
			b.Eventually(func() (string, error) {
				now, err := cluster.Current(child)()
				if err != nil {
					return "", err
				}
				found, _, _ := unstructured.NestedFieldNoCopy(now.Object, "spec", test.path)
				switch test.path {
				case "":
					found = now.Object["spec"]
				case "env":
					found, _, _ = unstructured.NestedFieldNoCopy(now.Object, "spec", "template", "spec", "containers")
					containers, _ := found.([]any)
					container, _ := containers[len(containers)-1].(map[string]any)
					found = container["env"]
				}
				text, err := json.Marshal(found)
				return string(text), err
			}).Should(gomega.MatchJSON(test.expect), b.story)
			b.expectRest()
			if test.removed != "" {
				b.Expect(b.logs.With("Fields of the child that are not wanted were removed", test.removed)).To(gomega.HaveLen(1), b.story)
			}
			now := b.current(child)
			operator.Stop()
			b.requests.Reset()
			b.start()
			b.expectRest()
			b.Expect(b.current(child).GetResourceVersion()).To(gomega.Equal(now.GetResourceVersion()), b.story)
			for _, entry := range now.GetManagedFields() {
				b.Expect(entry.Manager == name && entry.Operation == apimeta.ManagedFieldsOperationUpdate).To(gomega.BeFalse(), "fields that are never removed: %v", entry)
			}
		})
	}
}

func mergeOf(t *testing.T, child string) []byte {
	t.Helper()
	merge, err := json.Marshal(map[string]any{"spec": map[string]any{"child": child}})
	if err != nil {
		t.Fatal(err)
	}
	return merge
}

// What others have added is not removed. The error says whose it is, and the child follows when it is gone.
func TestWhatOthersHaveAddedIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, wantedIn(services), kopf.ID("children"), kopf.Backoff(200*time.Millisecond))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"child": `{"ports":[{"name":"http","port":80}]}`}))
	child := b.of(services, "one")
	b.as("other", child, `{"spec":{"ports":[{"name":"http","port":80},{"name":"web","port":8080}]}}`)
	b.expectRest()
	b.Expect(cluster.Client().Patch(t.Context(), shop.DeepCopy(), client.RawPatch("application/merge-patch+json", mergeOf(t, `{"ports":[{"name":"http","port":80},{"name":"web","port":81}]}`)))).To(gomega.Succeed())
	b.Eventually(b.logged("spec.ports[port=8080,protocol=TCP] belongs to other: remove it there, or declare the handler with kopf.Recreate")).ShouldNot(gomega.BeEmpty(), b.story)
	b.as("other", child, `{"spec":{"ports":[{"name":"http","port":80}]}}`)
	b.Eventually(cluster.Current(child)).Should(testenv.HavePath("spec.ports", gomega.HaveLen(2)), b.story)
}

// With kopf.Recreate, the child is created again without it.
func TestWhatOthersHaveAddedEndsWithARecreation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, wantedIn(services), kopf.ID("children"), kopf.Recreate("Service"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"child": `{"ports":[{"name":"http","port":80}]}`}))
	former := b.current(b.of(services, "one"))
	b.as("other", former, `{"spec":{"ports":[{"name":"http","port":80},{"name":"web","port":8080}]}}`)
	b.expectRest()
	b.Expect(cluster.Client().Patch(t.Context(), shop.DeepCopy(), client.RawPatch("application/merge-patch+json", mergeOf(t, `{"ports":[{"name":"http","port":80},{"name":"web","port":81}]}`)))).To(gomega.Succeed())
	b.expectChild(former, testenv.HavePath("metadata.uid", gomega.Not(gomega.BeEquivalentTo(former.GetUID()))), testenv.HavePath("spec.ports", gomega.HaveLen(2)))
}

package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

func testBuiltins(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	pod := e.create(t)
	g.Eventually(cluster.Current(pod)).Should(testenv.HavePath("status.phase", "Pending"))

	// There is no scheduler and no kubelet.
	target := map[string]any{"kind": "Node", "name": "some-node"}
	binding := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Binding", "target": target}}
	g.Expect(cluster.Client().SubResource("binding").Create(t.Context(), pod, binding)).To(gomega.Succeed())
	g.Eventually(cluster.Current(pod)).Should(gomega.WithTransform(client.Object.GetAnnotations, gomega.HaveKeyWithValue("example.com/first-node", "some-node")))
	setStatus(t, pod, `{"status":{"phase":"Running"}}`)
	operator.says(`"before": "Pending", "after": "Running"`)

	setStatus(t, pod, `{"status":{"phase":"Failed","reason":"Evicted"}}`)
	operator.says(`"before": "Running", "after": "Failed"`)
	g.Eventually(cluster.Events(pod)).Should(gomega.ContainElement("Warning Attention: The pod has failed: Evicted"))
	operator.says("The pod is deleted, because it has ended.")
	// Without a kubelet, the API server removes some pods at once, and marks others.
	g.Eventually(func() (bool, error) {
		current, err := cluster.Current(pod)()
		gone := apierrors.IsNotFound(err)
		return gone || err == nil && current.GetDeletionTimestamp() != nil, client.IgnoreNotFound(err)
	}).Should(gomega.BeTrue())
}

// setStatus changes the status of an object, as its controller does.
func setStatus(t testing.TB, object client.Object, patch string) {
	t.Helper()
	if err := cluster.Client().Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatalf("patching the status of %s with %s: %v", object.GetName(), patch, err)
	}
}

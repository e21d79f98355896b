package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bind binds a PVC like a provisioner in a real cluster, so that it can grow.
func (e *example) bind(t testing.TB, pvc *corev1.PersistentVolumeClaim) {
	t.Helper()
	g := gomega.NewWithT(t)
	class := e.read(t, "../tutorial/storageclass.yaml") // shared by all namespaces
	g.Expect(client.IgnoreAlreadyExists(cluster.Client().Create(t.Context(), class))).To(gomega.Succeed())
	merge(t, pvc, `{"spec":{"storageClassName":"standard"}}`)
	bound := client.RawPatch(client.Merge.Type(), []byte(`{"status":{"phase":"Bound"}}`))
	g.Expect(cluster.Client().Status().Patch(t.Context(), pvc, bound)).To(gomega.Succeed())
}

func haveSize(size string) types.GomegaMatcher {
	return gomega.WithTransform(func(pvc *corev1.PersistentVolumeClaim) string {
		return pvc.Spec.Resources.Requests.Storage().String()
	}, gomega.Equal(size))
}

package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

// The example has tests of its own; this one shows that the program runs.
func testTesting(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	object := e.create(t)
	operator.says("The creation is processed: 2 succeeded; 0 failed.")
	g.Eventually(cluster.Current(object)).Should(testenv.HavePath("status.order", "delivered"))
	note, err := get[corev1.ConfigMap](t, e.namespace, object.GetName()+"-note")()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(note).To(ownedBy(object))
	g.Expect(note.Data).To(gomega.HaveKeyWithValue("item", "value"))
	g.Expect(cluster.Client().Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"field":"other"}}`)))).To(gomega.Succeed())
	g.Eventually(func() string {
		note, _ := get[corev1.ConfigMap](t, e.namespace, object.GetName()+"-note")()
		return note.Data["item"]
	}).Should(gomega.Equal("other"))
	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	operator.says("The deletion is processed: 1 succeeded; 0 failed.")
}

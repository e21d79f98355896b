package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func testDrift(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	object := e.create(t)
	operator.says("The creation is processed: 1 succeeded; 0 failed.")
	theme := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: object.GetName() + "-theme"}}
	data := func() (map[string]string, error) {
		found, err := get[corev1.ConfigMap](t, theme.Namespace, theme.Name)()
		return found.Data, err
	}
	patch := func(obj client.Object, manager, text string) {
		t.Helper()
		g.Expect(cluster.Client().Patch(t.Context(), obj.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(text)), client.FieldOwner(manager))).To(gomega.Succeed()) //nolint:forcetypeassert // a copy has the same type
	}
	g.Eventually(data).Should(gomega.HaveKeyWithValue("color", "green"))

	patch(theme, "painter", `{"data":{"color":"red"}}`)
	operator.says("The child was changed by another client, and is restored.")
	g.Eventually(data).Should(gomega.HaveKeyWithValue("color", "green"))

	patch(theme, "kubectl-edit", `{"data":{"color":"pink","font":"mono"}}`)
	operator.says("Changes of a child by others are accepted.")
	g.Eventually(data).Should(gomega.Equal(map[string]string{"color": "pink", "font": "serif"}))

	patch(object, "kubectl-edit", `{"spec":{"color":"red"}}`)
	g.Eventually(data).Should(gomega.HaveKeyWithValue("color", "red"))

	g.Expect(cluster.Client().Delete(t.Context(), theme.DeepCopy())).To(gomega.Succeed())
	operator.says("The theme was deleted, and is created again.")
	g.Eventually(data).Should(gomega.HaveKeyWithValue("color", "red"))
}

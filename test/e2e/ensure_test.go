package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func testEnsure(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	shop := e.create(t)
	operator.says("The creation is processed: 1 succeeded; 0 failed.")
	deployment, err := get[appsv1.Deployment](t, e.namespace, shop.GetName())()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(deployment).To(ownedBy(shop))
	color := func() (map[string]string, error) {
		theme, err := get[corev1.ConfigMap](t, e.namespace, shop.GetName()+"-theme")()
		return theme.Data, err
	}
	g.Eventually(color).Should(gomega.HaveKeyWithValue("color", "green"))

	merge := func(obj client.Object, text string) {
		t.Helper()
		g.Expect(cluster.Client().Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(text)))).To(gomega.Succeed())
	}
	merge(shop.DeepCopy(), `{"spec":{"color":"red","data":false}}`)
	g.Eventually(color).Should(gomega.HaveKeyWithValue("color", "red"))
	operator.says("The update is processed: 1 succeeded; 0 failed.")
	claim, err := get[corev1.PersistentVolumeClaim](t, e.namespace, shop.GetName()+"-data")()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(claim.DeletionTimestamp).To(gomega.BeNil(), "the data is kept")

	theme := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: shop.GetName() + "-theme"}}
	merge(theme, `{"data":{"color":"pink"}}`)
	g.Eventually(color).Should(gomega.HaveKeyWithValue("color", "red"))
	merge(deployment, `{"spec":{"replicas":5}}`)
	operator.says("restored")
	g.Expect(cluster.Client().Delete(t.Context(), theme)).To(gomega.Succeed())
	g.Eventually(color).Should(gomega.HaveKeyWithValue("color", "red"))
	deployment, err = get[appsv1.Deployment](t, e.namespace, shop.GetName())()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(deployment.Spec.Replicas).To(gomega.HaveValue(gomega.BeEquivalentTo(5)), "the handler does not return the replicas")
}

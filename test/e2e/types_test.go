package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/test/testenv"
)

func testTypes(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	claim := e.variant(t, `{"spec":{"unknown":"kept"}}`)
	operator.says("The claim is new.", `"size": "1Gi"`)
	operator.says("The creation is processed: 3 succeeded; 0 failed.")
	g.Expect(cluster.Current(claim)()).To(gomega.SatisfyAll(testenv.HavePath("status.pvcName", "my-claim"), testenv.HavePath("spec.unknown", "kept")))
	pvc, err := get[corev1.PersistentVolumeClaim](t, e.namespace, "my-claim")()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(pvc).To(gomega.SatisfyAll(ownedBy(claim), haveSize("1Gi")))

	e.bind(t, pvc)
	merge(t, claim, `{"spec":{"size":"2Gi"}}`)
	operator.says("The size has changed.", `"from": "1Gi"`, `"to": "2Gi"`)
	g.Eventually(get[corev1.PersistentVolumeClaim](t, e.namespace, "my-claim")).Should(haveSize("2Gi"))

	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "one", Labels: map[string]string{"app": "claims"}},
		Data:       map[string]string{"a": "b", "c": "d"},
	}
	g.Expect(cluster.Client().Create(t.Context(), configMap)).To(gomega.Succeed())
	operator.says("The config map has data.", `"keys": 2`)
	operator.stop()
}

package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/test/testenv"
)

func testTyped(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	claim := e.variant(t, `{"spec":{"unknown":"kept"}}`)
	g.Eventually(cluster.Current(claim)).Should(gomega.SatisfyAll(
		beHandled(),
		testenv.HavePath("status.pvcName", "my-claim"),
		testenv.HavePath("spec.unknown", "kept")))
	pvc, err := get[corev1.PersistentVolumeClaim](t, e.namespace, "my-claim")()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(pvc).To(gomega.SatisfyAll(ownedBy(claim), haveSize("1Gi")))
	operator.says("The claim has a volume.")

	e.bind(t, pvc)
	merge(t, claim, `{"spec":{"size":"2Gi"}}`)
	current := get[corev1.PersistentVolumeClaim](t, e.namespace, "my-claim")
	g.Eventually(current).Should(haveSize("2Gi"))
	g.Eventually(cluster.Current(claim)).Should(beHandled())

	// The manager releases the lease, so that the next one can lead immediately.
	lease := get[coordinationv1.Lease](t, e.namespace, "typed.kopf.dev")
	g.Expect(lease()).To(gomega.HaveField("Spec.HolderIdentity", gomega.HaveValue(gomega.Not(gomega.BeEmpty()))))
	operator.stop()
	g.Expect(lease()).To(gomega.HaveField("Spec.HolderIdentity", gomega.Or(gomega.BeNil(), gomega.HaveValue(gomega.BeEmpty()))))

	merge(t, claim, `{"spec":{"size":"1500Mi"}}`)
	e.start(t)
	g.Eventually(cluster.Events(claim)).Should(gomega.ContainElement(
		"Warning HandlerFailed: Handler resizeFn/spec.size failed permanently: a volume of 2Gi cannot shrink to 1500Mi"))
	merge(t, claim, `{"spec":{"size":"3Gi"}}`)
	g.Eventually(current).Should(haveSize("3Gi"))
}

package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testEvents(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	object := e.create(t)
	operator.says("The password is renewed.")
	operator.says("The creation is processed: 3 succeeded; 0 failed.")
	g.Eventually(cluster.Events(object)).Should(gomega.ConsistOf(
		"Normal Logging: The object is being checked. attempt=0 spec=...",
		"Error Logging: The mail could not be sent: no network to=owner",
		"Normal SomeReason: Some message",
		"Warning SomeReason: Some warning",
		"Error SomeReason: Some exception: exception text",
		"SomeType SomeReason: Some message of another type",
		"Normal HandlerSucceeded: Handler logFn succeeded.",
		"Normal HandlerSucceeded: Handler createFn succeeded.",
		"Normal HandlerSucceeded: Handler createPod succeeded.",
		"Normal CycleFinished: The creation is processed: 3 succeeded; 0 failed.",
	))
	pod, err := get[corev1.Pod](t, e.namespace, object.GetName())()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(pod).To(ownedBy(object))
	g.Eventually(cluster.Events(pod)).Should(gomega.ConsistOf("Normal SomeReason: This pod belongs to kopf-example-1"))

	// An earlier attempt has created the pod.
	left := pod.DeepCopy()
	left.ObjectMeta = metav1.ObjectMeta{Namespace: e.namespace, Name: "kopf-example-2"}
	g.Expect(cluster.Client().Create(t.Context(), left)).To(gomega.Succeed())
	e.variant(t, `{"metadata":{"name":"kopf-example-2"}}`)
	g.Eventually(cluster.Events(left)).Should(gomega.ConsistOf("Normal SomeReason: This pod belongs to kopf-example-2"))
}

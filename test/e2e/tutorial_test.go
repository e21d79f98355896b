package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

// The chapters of docs/tutorial.md in order.
func testTutorial(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	current := get[corev1.PersistentVolumeClaim](t, e.namespace, "my-claim")

	// Creation.
	claim := e.create(t)
	g.Eventually(cluster.Current(claim)).Should(gomega.SatisfyAll(
		beHandled(), testenv.HavePath("status.createFn.pvc-name", "my-claim")))
	pvc, err := current()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(pvc).To(haveSize("1G"))

	// Cascading deletion: Kubernetes needs only this reference.
	g.Expect(pvc).To(ownedBy(claim))

	// Updates.
	e.bind(t, pvc)
	merge(t, claim, `{"spec":{"size":"2G"}}`)
	g.Eventually(current).Should(haveSize("2G"))
	g.Eventually(cluster.Current(claim)).Should(beHandled())

	testLabels(t, claim, pvc)

	// Mistakes.
	sizeless := e.variant(t, `{"metadata":{"name":"sizeless"},"spec":{"size":null}}`)
	g.Eventually(cluster.Events(sizeless)).Should(gomega.ContainElement(
		`Warning HandlerFailed: Handler createFn failed permanently: spec.size must be a size such as 1Gi; it is ""`))
	merge(t, sizeless, `{"spec":{"size":"1G"}}`)
	g.Eventually(cluster.Events(sizeless)).Should(gomega.ContainElement(
		"Warning HandlerFailed: Handler updateFn/spec.size failed permanently: there is no PVC because the creation failed: delete the object and create it again"))

	// An unbound PVC cannot grow, so the handler is called again later.
	labelled := e.variant(t, `{"metadata":{"name":"labelled","labels":{"owner":"me"}}}`)
	g.Eventually(cluster.Current(labelled)).Should(beHandled())
	pvc, err = get[corev1.PersistentVolumeClaim](t, e.namespace, "labelled")()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(pvc.Labels).To(gomega.Equal(map[string]string{"owner": "me"}))
	merge(t, labelled, `{"spec":{"size":"2G"}}`)
	g.Eventually(cluster.Events(labelled)).Should(gomega.ContainElement(
		gomega.HavePrefix("Warning HandlerRetrying: Handler updateFn/spec.size failed and will be retried: ")))
	operator.stop()
}

// Diffs: the child's labels follow the object's labels, but labels of others are kept.
func testLabels(t testing.TB, claim, pvc client.Object) {
	g := gomega.NewWithT(t)
	current := get[corev1.PersistentVolumeClaim](t, pvc.GetNamespace(), pvc.GetName())
	merge(t, pvc, `{"metadata":{"labels":{"foreign":"kept"}}}`)
	steps := []struct {
		labels string
		want   map[string]string
	}{
		{`{"application":"some-app","owner":"me"}`, map[string]string{"application": "some-app", "owner": "me", "foreign": "kept"}},
		{`{"application":"another-app","owner":null}`, map[string]string{"application": "another-app", "foreign": "kept"}},
		{`null`, map[string]string{"foreign": "kept"}},
	}
	for _, step := range steps {
		merge(t, claim, `{"metadata":{"labels":`+step.labels+`}}`)
		g.Eventually(current).Should(gomega.HaveField("Labels", step.want))
	}
}

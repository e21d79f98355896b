package e2e

import (
	"fmt"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/test/testenv"
)

func testRollout(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	first := e.start(t)
	objects := []*unstructured.Unstructured{e.create(t)}
	for n := 2; n <= 4; n++ {
		next := e.sample(t)
		next.SetName(fmt.Sprintf("kopf-example-%d", n))
		if n == 2 {
			unstructured.RemoveNestedField(next.Object, "spec", "page")
		}
		objects = append(objects, created(t, next))
	}
	renderedBy := func(n int, revision string) {
		g.Eventually(cluster.Current(objects[n-1])).Should(testenv.HavePath("status.render.revision", revision))
	}
	for n := range objects {
		renderedBy(n+1, "1")
		g.Eventually(cluster.Current(objects[n])).Should(beReady("True"))
	}
	first.stop()

	second := e.start(t, "REVISION=2")
	second.says("The rollout of revision 2 of handler render is stopped: 1 of 4 objects has failed, and 1 waits.")
	renderedBy(1, "2")
	renderedBy(3, "2")
	renderedBy(4, "1")
	g.Eventually(cluster.Current(objects[1])).Should(beReady("False"))
	second.stop()

	third := e.start(t, "REVISION=2") // a restart begins nothing
	third.says("is stopped: 1 of 4 objects has failed, and 1 waits.")
	merge(t, objects[1], `{"spec": {"page": "index"}}`)
	renderedBy(2, "2")
	renderedBy(4, "2")
	third.says("The rollout has ended.")
	g.Expect(third.saidTimes("The page is rendered.")).To(gomega.Equal(2))
	for _, object := range objects {
		g.Eventually(cluster.Current(object)).Should(beReady("True"))
	}
}

// beReady matches an object by the status of its condition Ready.
func beReady(status string) gomega.OmegaMatcher {
	return testenv.HavePath("status.conditions", gomega.ContainElement(gomega.And(
		gomega.HaveKeyWithValue("type", "Ready"), gomega.HaveKeyWithValue("status", status),
	)))
}

package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

func testAllAtOnce(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	operator.says("The operator is running.")
	without := e.sample(t)
	without.Object["spec"] = map[string]any{}
	g.Eventually(func() error { return cluster.Client().Create(t.Context(), without.DeepCopy(), client.DryRunAll) }).Should(
		gomega.MatchError(gomega.ContainSubstring("kopf-example-1 needs a field.")))

	object := e.create(t)
	operator.says("The daemon starts.", "The creation is processed")
	g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(
		beHandled(),
		testenv.HaveFinalizer(finalizer),
		testenv.HavePath("status.ticked", true),
		testenv.HavePath("status.createFn/a", "a"),
		testenv.HavePath("status.createFn/b", "b")))
	g.Eventually(cluster.Events(object)).Should(gomega.ContainElement(gomega.ContainSubstring("Handler createFn will be retried: not yet")))
	g.Expect(cluster.Events(object)()).NotTo(gomega.ContainElement(gomega.ContainSubstring("The object is created.")), "only warnings are posted")

	merge(t, object, `{"spec":{"field":"changed"}}`)
	operator.says("The update is processed: 1 succeeded; 0 failed.")
	g.Expect(tryMerge(t, object, `{"spec":{"field":null}}`)).To(gomega.MatchError(gomega.ContainSubstring("needs a field")))

	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	g.Eventually(cluster.Exists(object)).Should(gomega.BeFalse())
	operator.says("The object is being deleted.", "The daemon stops.")
	operator.stop()
	operator.says("All handlers have ended.")
}

package e2e

import (
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

func testHandlers(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	object := e.create(t)
	operator.says("The creation is processed: 3 succeeded; 0 failed.", "The object is new.", "The operator takes care of the object.",
		`"old": "(absent)", "new": "value"`)
	g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(beHandled(), testenv.HaveFinalizer(finalizer)))

	merge(t, object, `{"spec":{"field":"changed"}}`)
	operator.says("The update is processed: 3 succeeded; 0 failed.", `change spec.field: \"value\" -> \"changed\"`, `"old": "value", "new": "changed"`)
	g.Eventually(cluster.Current(object)).Should(beHandled())
	g.Eventually(func() int { return operator.saidTimes("The operator received a watch event.", `"type": "MODIFIED"`) }).Should(
		gomega.BeNumerically(">=", 3), "the finalizer, the two bases, and the change")
	operator.stop()

	// An object that has changed without an operator is updated and resumed together.
	merge(t, object, `{"spec":{"field":"again"}}`)
	second := e.start(t)
	second.says("The update is processed: 3 succeeded; 0 failed.", `"reason": "update"`, `"old": "changed", "new": "again"`)
	g.Eventually(cluster.Current(object)).Should(beHandled())
	g.Expect(second.saidTimes("The operator takes care of the object.")).To(gomega.Equal(1), "one function is one handler")
	second.stop()

	// An unchanged object is only resumed.
	third := e.start(t)
	third.says("The resuming is processed: 1 succeeded; 0 failed.", `"reason": "resume"`)
	g.Expect(third.saidTimes("The handler succeeded.")).To(gomega.Equal(1), "%s", third.output())

	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	third.says("The object is being deleted.", "The deletion is processed: 1 succeeded; 0 failed.", `"type": "DELETED"`)
	g.Eventually(cluster.Exists(object)).Should(gomega.BeFalse())
}

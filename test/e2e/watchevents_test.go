package e2e

import (
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

func testWatchEvents(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	object := e.create(t)
	operator := e.start(t)
	operator.says(`"type": "", "field": "value"`, "the notification service does not respond")

	merge(t, object, `{"spec":{"field":"changed"}}`)
	operator.says(`"type": "MODIFIED", "field": "changed"`)
	g.Expect(cluster.Current(object)()).To(gomega.SatisfyAll(haveNoTraces(), gomega.Not(testenv.HaveFinalizer(finalizer))))
	g.Expect(operator.saidTimes("The object is gone.")).To(gomega.BeZero())

	merge(t, object, `{"metadata":{"labels":{"mirrored":"yes"}}}`)
	g.Eventually(cluster.Current(object)).Should(testenv.HavePath("status.mirrored", "changed"))
	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	operator.says("The object is gone.")
	g.Expect(operator.saidTimes("An event was received.")).To(gomega.Equal(5), "listed, changed, labeled, its own write, deleted: %s", operator.output())
	g.Expect(operator.saidTimes("the notification service does not respond")).To(gomega.Equal(5), "an error is not retried")
}

package e2e

import (
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

func testTimers(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	object := e.create(t)
	operator.says("The measurement starts.", `The service responds.`, `"retry": 2`)
	g.Expect(operator.saidTimes("the service does not respond")).To(gomega.Equal(2), "%s", operator.output())
	g.Eventually(cluster.Current(object)).Should(testenv.HavePath("status.count.calls", gomega.BeNumerically(">=", 2)))

	// The results of the other timer do not delay this one.
	operator.says("The object has settled.", `"field": "value"`)
	merge(t, object, `{"spec":{"field":"changed"}}`)
	operator.says(`"field": "changed"`)
	g.Expect(operator.saidTimes("The object has settled.")).To(gomega.Equal(2), "once after each change")

	g.Expect(cluster.Current(object)()).NotTo(testenv.HaveFinalizer(finalizer))
	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	g.Expect(cluster.Exists(object)()).To(gomega.BeFalse(), "nothing holds it")

	// A recreated object has a new memo.
	g.Expect(operator.saidTimes("The timer is called.", `"calls": 1}`)).To(gomega.Equal(1), "%s", operator.output())
	e.create(t)
	g.Eventually(func() int { return operator.saidTimes("The timer is called.", `"calls": 1}`) }).Should(gomega.Equal(2))
	operator.stop()
}

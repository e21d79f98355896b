package e2e

import (
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

func testDaemons(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	object := e.create(t)
	operator.says("The monitor starts.", `"field": "value"`)
	g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(
		testenv.HaveFinalizer(finalizer), testenv.HavePath("status.prepare.attempts", int64(3))))
	g.Eventually(operator.saidTimes).WithArguments("the data is not there yet").Should(gomega.Equal(2), operator.output)

	merge(t, object, `{"spec":{"field":"changed"}}`)
	operator.says(`"field": "changed"`)
	g.Expect(operator.saidTimes("The monitor starts.")).To(gomega.Equal(1), "its view is live")

	merge(t, object, `{"metadata":{"labels":{"monitored":null}}}`)
	operator.says("The monitor stops.", `"reason": "mismatch|signaled"`)
	merge(t, object, `{"metadata":{"labels":{"monitored":"yes"}}}`)
	g.Eventually(func() int { return operator.saidTimes("The monitor starts.") }).Should(gomega.Equal(2))
	g.Expect(operator.saidTimes("The request is canceled.")).To(gomega.BeZero(), "the others go on")

	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	operator.says(`"reason": "deleted|signaled"`, `"reason": "deleted|signaled|canceled"`)
	g.Eventually(cluster.Exists(object)).Should(gomega.BeFalse())

	// The object outlives the operator, and the next operator starts its daemons again.
	newer := e.variant(t, `{"metadata":{"name":"newer"}}`)
	g.Eventually(func() int { return operator.saidTimes("The monitor starts.", "newer") }).Should(gomega.Equal(1))
	g.Eventually(cluster.Current(newer)).Should(testenv.HavePath("status.prepare.attempts", int64(3)))
	operator.stop()
	g.Expect(operator.saidTimes("The monitor stops.", "newer", `"reason": "exiting|signaled"`)).To(gomega.Equal(1))
	g.Expect(operator.saidTimes("The request is canceled.", "newer")).To(gomega.Equal(1))
	g.Expect(cluster.Current(newer)()).To(testenv.HaveFinalizer(finalizer))

	again := e.start(t)
	again.says("The monitor starts.")
	g.Expect(cluster.Client().Delete(t.Context(), newer)).To(gomega.Succeed())
	g.Eventually(cluster.Exists(newer)).Should(gomega.BeFalse())
}

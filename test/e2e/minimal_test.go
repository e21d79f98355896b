package e2e

import (
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

func testMinimal(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	object := e.create(t)
	operator.says("And here we are!", `{"field":"value"}`, "The creation is processed: 1 succeeded; 0 failed.")
	g.Eventually(cluster.Current(object)).Should(beHandled())
	g.Expect(cluster.Current(object)()).NotTo(testenv.HaveFinalizer(finalizer), "no handler needs it")
	operator.stop()

	// Another operator finds one handled object and one unhandled object.
	again := e.start(t)
	newer := e.sample(t)
	newer.SetName("newer")
	created(t, newer)
	again.says("The creation is processed")
	g.Expect(again.saidTimes("And here we are!", "kopf-example-1")).To(gomega.BeZero(), "%s", again.output())
	g.Expect(again.saidTimes("And here we are!", "newer")).To(gomega.Equal(1))
}

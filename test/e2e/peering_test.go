package e2e

import (
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

func testPeering(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	const handled, active = "This operator handles the object.", "This operator is active."
	deployed := e.start(t)
	object := e.create(t)
	deployed.says(handled, active)
	g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(beHandled(), handledBy(deployed)))

	developed := e.startWith(t, []string{"--dev"})
	deployed.says("The operator is paused by operators of a higher priority.", "This operator yields to another one.")
	developed.says(active)
	merge(t, object, `{"spec":{"field":"changed"}}`)
	g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(beHandled(), handledBy(developed)))
	g.Expect(deployed.saidTimes(handled)).To(gomega.Equal(1), "%s", deployed.output())

	developed.stop()
	deployed.says("The operator resumes")
	g.Eventually(func() int { return deployed.saidTimes(active) }).Should(gomega.Equal(2))
	merge(t, object, `{"spec":{"field":"again"}}`)
	g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(beHandled(), handledBy(deployed)))
	g.Expect(developed.saidTimes(handled)).To(gomega.Equal(1), "%s", developed.output())
	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	g.Eventually(cluster.Exists(object)).Should(gomega.BeFalse())
}

// handledBy matches an object that an operator has marked as handled.
func handledBy(o *operator) gomega.OmegaMatcher {
	return testenv.HavePath("status.handleFn.by", int64(o.session.Command.Process.Pid))
}

package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/kopf-go/kopf/test/testenv"
)

func testHooks(t *testing.T, e *example) {
	g := gomega.NewWithT(t)
	const own = "example.com/in-the-database"
	object := e.create(t)
	operator := e.start(t)
	operator.says("the database is not there yet", "The creation is processed: 1 succeeded; 0 failed.")
	g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(beHandled(), testenv.HaveFinalizer(own)))
	operator.stop()
	g.Expect(operator.saidTimes("The database is closed.", `"rows": 1`)).To(gomega.Equal(1), "%s", operator.output())

	again := e.start(t)
	again.says("The resuming is processed: 1 succeeded; 0 failed.")
	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	g.Eventually(cluster.Exists(object)).Should(gomega.BeFalse())
	again.stop()
	g.Expect(again.saidTimes("The database is closed.", `"rows": 0`)).To(gomega.Equal(1), "%s", again.output())

	refusing := e.start(t, "DATABASE_OWNER=nobody")
	g.Eventually(refusing.session).Should(gexec.Exit(1))
	refusing.stopped = true
	refusing.says("the database needs an owner: set DATABASE_OWNER")
	g.Expect(refusing.saidTimes("The database is closed.")).To(gomega.BeZero(), "it was never opened")
}

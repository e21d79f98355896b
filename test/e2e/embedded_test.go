package e2e

import (
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

func testEmbedded(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	object := e.create(t)
	application := e.start(t)
	application.says(`"The application is ready.","objects":1`)
	g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(beHandled(), testenv.HavePath("status.greet", "hello, kopf-example-1")))
	application.stop()
	application.says("No more greetings.", "The application stops: its operators have stopped.")
}

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

func testStorage(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	state := "STATE_FILE=" + filepath.Join(t.TempDir(), "state.db")
	first := e.start(t, state)
	object := e.create(t)
	first.says("restart the operator now")
	first.stop()
	g.Expect(cluster.Current(object)()).To(haveNoTraces())

	// The retries continue, and the creation is not repeated.
	second := e.start(t, state)
	second.says("The object is created.", `"retry": 1`, "The creation is processed: 1 succeeded; 0 failed.")
	second.stop()

	// The current state is compared with the state in the file.
	merge(t, object, `{"spec":{"field":"changed"}}`)
	third := e.start(t, state)
	third.says(`change spec.field: \"value\" -> \"changed\"`, "The update is processed: 1 succeeded; 0 failed.")
	g.Expect(third.output()).NotTo(gomega.ContainSubstring("The object is created."))
	g.Expect(cluster.Current(object)()).To(gomega.SatisfyAll(haveNoTraces(), testenv.HavePath("status", nil)))

	// A recreated object inherits nothing.
	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	e.create(t)
	third.says("The object is created.")
	third.stop()

	// The file has forgotten the first object when it was deleted. It forgets the second one, which disappears while no
	// operator is running, at the next start.
	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	fourth := e.start(t, state)
	fourth.says("The file has forgotten the objects that are gone.", `"objects": 1`)
	e.create(t)
	fourth.says("The object is created.")
	fourth.stop()

	// Without the file, everything is new.
	e.start(t, "STATE_FILE="+filepath.Join(t.TempDir(), "other.db")).says("restart the operator now")
}

package commands

import (
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

// The handlers of a package are uninstalled: not while their operator runs, and then in three steps.
func testRelease(t *testing.T, p programs) {
	g, namespace := gomega.NewWithT(t), cluster.Namespace(t)
	variables := []string{"KUBECONFIG=" + kubeconfig(t)}
	object, other := created(t, namespace, "one"), created(t, namespace, "two")
	operator := start(t, variables, p.kopf, "run", "./testdata/handlers", "-n", namespace, "--standalone", "--leader-elect", "--lease-name=mine", "--lease-namespace="+namespace)
	g.Eventually(cluster.Current(object)).Should(testenv.HavePath("status.greet", "hello"))
	g.Eventually(cluster.Current(other)).Should(testenv.HavePath("status.greet", "hello"))
	release := func(more ...string) *process {
		arguments := []string{"release", "./testdata/handlers", "kopfexamples", "-n", namespace, "--lease-name=mine", "--lease-namespace=" + namespace, "--peering", namespace}
		return start(t, variables, p.kopf, append(arguments, more...)...)
	}
	refused := release()
	refused.ends(1)
	g.Expect(refused.out()).To(gomega.BeEmpty())
	g.Expect(refused.log()).To(gomega.And(
		gomega.ContainSubstring("an operator still runs, and would handle released objects as new ones; stop it first"),
		gomega.ContainSubstring(" holds the lease "+namespace+"/mine, which counts until ")))

	operator.session.Interrupt()
	operator.ends(0)
	unproven := release()
	unproven.ends(1)
	g.Expect(unproven.log()).To(gomega.And(
		gomega.ContainSubstring(`no operator holds the lease "mine", but an operator without leader election and without shards holds none`),
		gomega.ContainSubstring("confirm that with --operator-stopped")), "the flag --leader-elect is unknown to the command")
	dry := release("--dry-run", "--operator-stopped")
	dry.ends(0)
	g.Expect(dry.out()).To(gomega.HavePrefix("kopfexamples.kopf.dev: 2 of 2 objects would be released, 0 from the finalizer\n"))
	g.Expect(cluster.Current(object)()).NotTo(testenv.HavePath("metadata.annotations", nil))

	done := release("--operator-stopped")
	done.ends(0)
	g.Expect(done.out()).To(gomega.HavePrefix("kopfexamples.kopf.dev: 2 of 2 objects were released, 0 from the finalizer\n"))
	g.Expect(done.log()).To(gomega.Equal("kopfexamples.kopf.dev: 2 of 2 objects\n"))
	g.Expect(cluster.Current(object)()).To(gomega.And(testenv.HavePath("metadata.annotations", nil), testenv.HavePath("status.greet", "hello")))
	again := release("-o", "json", "--operator-stopped")
	again.ends(0)
	g.Expect(again.out()).To(gomega.And(gomega.ContainSubstring(`"objects": 2`), gomega.ContainSubstring(`"released": 0`)))
}

package commands

import (
	"testing"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

func testFreezeAndResume(t *testing.T, p programs) {
	g := gomega.NewWithT(t)
	namespace, config := cluster.Namespace(t), kubeconfig(t)
	peers := testenv.NewObject("KopfPeering", namespace, "mine", nil)
	g.Expect(cluster.Client().Create(t.Context(), peers)).To(gomega.Succeed())
	operator := start(t, nil, p.example, "--kubeconfig", config, "-n", namespace, "--peering=mine")
	created(t, namespace, "before")
	operator.says("[" + namespace + "/before] And here we are!")

	variables := []string{"KUBECONFIG=" + config, "KOPF_NAMESPACE=" + namespace, "KOPF_PEERING=mine"}
	freeze := start(t, variables, p.kopf, "freeze", "--lifetime=3600", "-m", "a migration", "-i", "maintainer")
	freeze.ends(0)
	g.Expect(freeze.out()).To(gomega.MatchRegexp(`^The operators of the KopfPeering "mine" in the namespace "` + namespace + `" pause until \d{4}-\d\d-\d\dT[\d:]+Z, or until: kopf resume --id maintainer --peering mine -n ` + namespace + `\nThe freeze pauses .+@.+/\d{14}/.{6}\.\n$`))
	g.Expect(cluster.Current(peers)()).To(gomega.And(
		testenv.HavePath("status.maintainer.priority", int64(100)),
		testenv.HavePath("status.maintainer.lifetime", int64(3600)),
		testenv.HavePath("status.maintainer.message", "a migration")))
	operator.says("paused")
	during := created(t, namespace, "during")
	start(t, variables, p.kopf, "freeze", "--lifetime=2h", "--id=maintainer", "--workers=1").ends(2)
	other := start(t, variables, p.kopf, "resume", "--id=other", "--kubeconfig="+config)
	other.ends(1)
	g.Expect(other.out()).To(gomega.BeEmpty())
	g.Expect(other.log()).To(gomega.MatchRegexp(`^kopf: nothing was changed in the KopfPeering "mine" in the namespace "` + namespace + `": there is no freeze by other, but one by maintainer until \d{4}-.*Z \("a migration"\)\. ` +
		`To end that: kopf resume --id maintainer --peering mine -n ` + namespace + ` --kubeconfig[ =]` + config + `\n$`))
	again := start(t, variables, p.kopf, "freeze", "--lifetime=2h", "--id=maintainer", "-p", "200", "--kubeconfig="+config)
	again.ends(0)
	g.Expect(again.out()).To(gomega.ContainSubstring("Z, or until: kopf resume --id maintainer --peering mine -n " + namespace + " --kubeconfig=" + config + "\n"))
	g.Expect(cluster.Current(peers)()).To(gomega.And(
		testenv.HavePath("status.maintainer.lifetime", int64(7200)), testenv.HavePath("status.maintainer.message", nil)))
	g.Expect(client.IgnoreNotFound(cluster.Client().Get(t.Context(), client.ObjectKeyFromObject(during), during))).To(gomega.Succeed())
	g.Expect(during.GetAnnotations()).To(gomega.BeEmpty())
	g.Expect(operator.log()).NotTo(gomega.ContainSubstring("/during] And here we are!"))

	low := start(t, variables, p.kopf, "freeze", "--lifetime=2h", "--id=low", "-p", "-1")
	low.ends(0)
	g.Expect(low.out()).To(gomega.MatchRegexp(`\nThe freeze pauses no operator. The priority -1 is too low for [^ ]+@[^ ]+/\d{14}/.{6}: set --priority.\n$`))
	start(t, variables, p.kopf, "resume", "--id=low").ends(0)
	resume := start(t, variables, p.kopf, "resume", "--id=maintainer")
	resume.ends(0)
	g.Expect(resume.out()).To(gomega.ContainSubstring("maintainer no longer pauses the operators of the "))
	resume = start(t, variables, p.kopf, "resume", "--id=maintainer") // repeating is not an error
	resume.ends(0)
	g.Expect(resume.out()).To(gomega.MatchRegexp(`^Nothing was changed in the KopfPeering .*: there is no freeze by maintainer, nor by others; the entries are: .+@.+\.\n$`))
	operator.says("[" + namespace + "/during] And here we are!")
	operator.session.Interrupt()
	operator.ends(0)
}

func testFreezeOfNothing(t *testing.T, p programs) {
	variables := []string{"KUBECONFIG=" + kubeconfig(t)}
	for name, arguments := range map[string][]string{
		"freeze": {"freeze", "--lifetime=10"}, "resume": {"resume"},
	} {
		t.Run(name, func(t *testing.T) {
			run := start(t, variables, p.kopf, append(arguments, "--peering=none")...)
			run.ends(1)
			gomega.NewWithT(t).Expect(run.log()).To(gomega.MatchRegexp(`^kopf: there is no ClusterKopfPeering "none": create it with: .* kubectl create -f -\n$`))
			gomega.NewWithT(t).Expect(run.out()).To(gomega.BeEmpty())
		})
	}
}

package commands

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

// exported finds the kubeconfig of a cluster in the log.
var exported = regexp.MustCompile(`export KUBECONFIG=(\S+)\n`)

// testRunWithCluster runs a package on a cluster that the command starts.
func testRunWithCluster(t *testing.T, p programs) {
	g := gomega.NewWithT(t)
	operator := start(t, nil, p.kopf, "run", "../../../examples/01-minimal", "--with-cluster", "--crds", filepath.Join("..", "..", "..", testenv.ExampleCRDs), "-A", "--log-format=plain")
	operator.says("\n" + "kopf:     export KUBECONFIG=")
	operator.says("kopf: Installed resource definitions from ../../../examples/crd: ephemeralvolumeclaims.kopf.dev, kopfexamples.kopf.dev.")
	path := exported.FindStringSubmatch(operator.log())[1]
	kubeconfig, err := os.ReadFile(path)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	own, err := testenv.Connect(kubeconfig)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	object := testenv.NewObject("KopfExample", own.Namespace(t), "one", nil)
	g.Expect(own.Client().Create(t.Context(), object)).To(gomega.Succeed())
	operator.says("/one] And here we are!")

	operator.session.Interrupt()
	operator.ends(0)
	operator.says("kopf: Stopping the cluster, and removing its files.")
	g.Expect(filepath.Dir(path)).NotTo(gomega.BeAnExistingFile())
}

// testCluster starts a cluster, which outlives the operators on it.
func testCluster(t *testing.T, p programs) {
	g := gomega.NewWithT(t)
	cluster := start(t, nil, p.kopf, "cluster", "--crds", filepath.Join("..", "..", "..", testenv.ExampleCRDs))
	cluster.says("kopf: Installed resource definitions from ../../../examples/crd: ")
	cluster.says("kopf:     export KUBECONFIG=")
	path := exported.FindStringSubmatch(cluster.log())[1]
	for range 2 {
		operator := start(t, nil, p.example, "--kubeconfig", path, "-A")
		operator.says("The operator is running.")
		operator.session.Interrupt()
		operator.ends(0)
	}
	cluster.session.Interrupt()
	cluster.ends(0)
	cluster.says("kopf: Stopping the cluster, and removing its files.")
	g.Expect(filepath.Dir(path)).NotTo(gomega.BeAnExistingFile())
}

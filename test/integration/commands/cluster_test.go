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
	operator.says("kopf: Installed resource definitions: ")
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

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
	operator.says("kopf: Installed resource definitions from ../../../examples/crd: ephemeralvolumeclaims.kopf.dev, kopfexamples.kopf.dev, sites.kopf.dev.")
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

// testCluster starts a cluster, which outlives the operators on it. The definitions are in folders
// below the one that is named.
func testCluster(t *testing.T, p programs) {
	g := gomega.NewWithT(t)
	folder := t.TempDir()
	g.Expect(os.CopyFS(filepath.Join(folder, "bases", "v1"), os.DirFS(filepath.Join("..", "..", "..", testenv.ExampleCRDs)))).To(gomega.Succeed())
	cluster := start(t, nil, p.kopf, "cluster", "--crds", folder)
	cluster.says("kopf: Installed resource definitions from " + folder + ": ephemeralvolumeclaims.kopf.dev, kopfexamples.kopf.dev, sites.kopf.dev.")
	cluster.says("kopf:     export KUBECONFIG=")
	path := exported.FindStringSubmatch(cluster.log())[1]
	for range 2 {
		operator := start(t, nil, p.example, "--kubeconfig", path, "-A")
		operator.says("The operator is running.")
		operator.session.Interrupt()
		operator.ends(0)
	}
	both := start(t, nil, p.kopf, "cluster", "--crds", filepath.Join("..", "..", "..", "config", "crd"))
	both.ends(1)
	g.Expect(both.log()).To(gomega.Equal("kopf: the resource definitions in ../../../config/crd cannot be read: ../../../config/crd/schemaless/clusterkopfpeerings.yaml: another definition of " +
		"clusterkopfpeerings.kopf.dev is in ../../../config/crd/kopf.dev/clusterkopfpeerings.yaml. Use --crds to name the files or folders of your resources instead\n"))
	cluster.session.Interrupt()
	cluster.ends(0)
	cluster.says("kopf: Stopping the cluster, and removing its files.")
	g.Expect(filepath.Dir(path)).NotTo(gomega.BeAnExistingFile())
}

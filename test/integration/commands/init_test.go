package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/test/testenv"
)

// testInit writes a new project, and runs it as its README says. The library is that of the repository, and so are
// the versions of all modules. Projects with types are built in pkg/cli/scaffold.
func testInit(t *testing.T, p programs) {
	g := gomega.NewWithT(t)
	root, err := assets.Root()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	dir := filepath.Join(t.TempDir(), "greeter")
	written := start(t, nil, p.kopf, "init", dir, "--replace", root)
	written.ends(0)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600)).To(gomega.Succeed())

	complete := exec.CommandContext(t.Context(), "go", "list", "-mod=mod", "-deps", "-test", "./...", "tool") // as go mod tidy does
	complete.Dir = dir
	output, err := complete.CombinedOutput()
	g.Expect(err).NotTo(gomega.HaveOccurred(), string(output))
	program, err := exec.LookPath("make")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	operator := start(t, []string{"MAKEFLAGS="}, program, "-C", dir, "run")
	operator.says("The ConfigMap has the message.")
	kubeconfig, err := os.ReadFile(exported.FindStringSubmatch(operator.log())[1])
	g.Expect(err).NotTo(gomega.HaveOccurred())
	own, err := testenv.Connect(kubeconfig)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	configMap := &corev1.ConfigMap{}
	g.Expect(own.Client().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "example-message"}, configMap)).To(gomega.Succeed())
	g.Expect(configMap.Data).To(gomega.HaveKeyWithValue("message", "Hello, world!"))
	g.Expect(configMap.OwnerReferences).To(gomega.HaveLen(1))
	operator.session.Terminate()
	operator.says("kopf: Stopping the cluster, and removing its files.")
}

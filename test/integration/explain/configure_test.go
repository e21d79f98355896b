package explain

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"github.com/spf13/cobra"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// ask runs a command of the program, and returns its output.
func (s *scene) ask(name string, arguments ...string) string {
	s.t.Helper()
	kubeconfig := filepath.Join(s.t.TempDir(), "kubeconfig")
	s.Expect(os.WriteFile(kubeconfig, cluster.KubeConfig(), 0o600)).To(gomega.Succeed())
	root, out := &cobra.Command{Use: "my-operator"}, &bytes.Buffer{}
	root.AddCommand(kopf.Commands(func(o *kopf.Options) { o.Registry = s.Registry })...)
	root.SetOut(out)
	root.SetErr(os.Stderr)
	root.SetArgs(append([]string{name, "--kubeconfig", kubeconfig}, arguments...))
	s.Expect(root.ExecuteContext(s.t.Context())).To(gomega.Succeed())
	return strings.ReplaceAll(out.String(), s.namespace, "NAMESPACE")
}

// An operator with another finalizer and other annotations leaves an object behind. The commands know
// both by Configure.
func TestConfigureReachesEveryCommand(t *testing.T) {
	s := newScene(t)
	s.OnCreate(examples, create, kopf.ID("fn"))
	s.OnDelete(examples, create, kopf.ID("clean"))
	s.Configure(func(o *kopf.Settings) {
		o.Name = "shops.example.com"
		o.Persistence.Finalizer = "shops.example.com/hold"
		o.Persistence.DiffBase = storage.AnnotationsDiffBase{Prefix: "shops.example.com"}
		o.Persistence.Progress = storage.AnnotationsProgress{Prefix: "shops.example.com"}
		o.Peering.Name = s.namespace
		o.Replicas.LeaderElection, o.Replicas.LeaseNamespace, o.Replicas.LeaseName = true, s.namespace, "shops"
	})
	operator := operators.Start(t, cluster.Config(), s.namespace, s.Registry)
	obj := s.create("one")
	s.Eventually(cluster.Current(obj)).Should(gomega.And(
		testenv.HaveFinalizer("shops.example.com/hold"), testenv.HaveAnnotation("shops.example.com/last-handled-configuration", gomega.Not(gomega.BeEmpty()))))
	operator.Stop()
	s.releaseAfterwards()

	s.writes("explain", steady(s.ask("explain", "kopfexample/one", "-n", s.namespace)))
	s.writes("plan", s.ask("plan", "-n", s.namespace))
	s.Expect(s.ask("rbac")).To(gomega.And(gomega.ContainSubstring("  name: shops.example.com"), gomega.ContainSubstring("leases")))
	s.writes("peers", s.ask("peers"))
	s.writes("release", s.ask("release", "kopfexamples", "-n", s.namespace))
	s.Expect(cluster.Current(obj)()).To(gomega.And(testenv.HavePath("metadata.finalizers", nil), testenv.HavePath("metadata.annotations", nil)))
}

// Settings that a startup handler makes are unknown, and the answers say so once.
func TestSettingsOfStartupHandlersAreUnknown(t *testing.T) {
	s := newScene(t)
	s.OnStartup(func(_ context.Context, u *kopf.Startup) error { t.Error("it is called"); return nil }, kopf.ID("prepare"))
	s.OnCreate(examples, create, kopf.ID("fn"))
	s.create("one")
	s.writes("explain", s.ask("explain", "kopfexample/one", "-n", s.namespace))
	s.writes("plan", s.ask("plan", "-n", s.namespace))
}

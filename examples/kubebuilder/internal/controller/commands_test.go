package controller_test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/envtest/komega"

	webv1 "github.com/kopf-go/kopf/examples/kubebuilder/api/v1"
	"github.com/kopf-go/kopf/pkg/kopf"
)

// The manager has these commands; see cmd/main.go.
var _ = Describe("A command", func() {
	var site *webv1.Site

	BeforeEach(func(ctx SpecContext) {
		komega.SetClient(k8sClient)
		site = &webv1.Site{ObjectMeta: newMeta(ctx), Spec: webv1.SiteSpec{Message: "Hello"}}
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		Eventually(komega.Object(site)).Should(HaveField("Status.URL", Not(BeEmpty())))
	})

	It("explains what has happened to a site", func(ctx SpecContext) {
		Eventually(func() string { return answer(ctx, "explain", "site/"+site.Name, "--namespace", site.Namespace) }).Should(SatisfyAll(
			ContainSubstring("It was handled, and has not changed since."),
			ContainSubstring("- deploy (update) has nothing to do"),
			ContainSubstring("kubectl get mutatingwebhookconfigurations "+configurationName),
		))
	})

	It("plans that nothing happens to a handled site", func(ctx SpecContext) {
		Eventually(func() string { return answer(ctx, "plan", "--namespace", site.Namespace) }).Should(
			ContainSubstring("sites.web.example.com: 1 object\n  0 creations, 0 updates, and 0 deletions would be handled\n"))
	})
})

// answer runs a command of the manager, and returns its output.
func answer(ctx SpecContext, arguments ...string) string {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(file, kubeconfig, 0o600)).To(Succeed())
	root := &cobra.Command{Use: "manager"}
	root.AddCommand(kopf.Commands(func(o *kopf.Options) {
		o.Registry = newRegistry()
		o.Settings.Peering.Standalone, o.Settings.Admission.Managed = true, configurationName
	})...)
	var out strings.Builder
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append(arguments, "--kubeconfig", file))
	Expect(root.ExecuteContext(ctx)).To(Succeed(), out.String)
	return out.String()
}

package e2e

import (
	"os"
	"os/exec"
	"testing"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

func testConversion(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	operator.says("The cluster lets the operator convert objects.", `"definition": "sites.kopf.dev"`)
	read := func(version string) func() (*unstructured.Unstructured, error) {
		return func() (*unstructured.Unstructured, error) {
			site := &unstructured.Unstructured{}
			site.SetAPIVersion("kopf.dev/" + version)
			site.SetKind("Site")
			return site, cluster.Client().Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: "kopf-example-1"}, site)
		}
	}

	spec := func(port int64) map[string]any {
		return map[string]any{"owner": "web", "paused": true, "endpoints": []any{
			map[string]any{"host": "one.example.com", "port": port}, map[string]any{"host": "two.example.com"},
		}}
	}

	// The API server uses the conversion a moment after it is written. An object that was stored before has lost fields.
	sample := e.sample(t)
	g.Eventually(func() (*unstructured.Unstructured, error) {
		_ = cluster.Client().Delete(t.Context(), sample.DeepCopy())
		if err := cluster.Client().Create(t.Context(), sample.DeepCopy()); err != nil {
			return nil, err
		}
		return read("v1")()
	}).Should(testenv.HavePath("spec", spec(80)))
	operator.says("The site is new.", "two.example.com")
	g.Expect(read("v1beta1")()).To(gomega.SatisfyAll(testenv.HavePath("spec", map[string]any{
		"owner": "web", "endpoint": map[string]any{"host": "one.example.com", "port": int64(80)},
	})))
	g.Expect(read("v1alpha1")()).To(testenv.HavePath("spec", map[string]any{"owner": "web", "host": "one.example.com", "port": int64(80)}))

	// A client of the oldest version changes the object. What its version does not have is kept.
	old, err := read("v1alpha1")()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	merge(t, old, `{"spec":{"port":8080}}`)
	g.Expect(read("v1")()).To(testenv.HavePath("spec", spec(8080)))

	// The definition gets another storage version, and the stored objects move to it.
	known := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(known)).To(gomega.Succeed())
	admin, err := client.New(cluster.Config(), client.Options{Scheme: known})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "sites.kopf.dev"
	g.Expect(admin.Patch(t.Context(), definition, client.RawPatch("application/json-patch+json", []byte(
		`[{"op":"replace","path":"/spec/versions/0/storage","value":true},{"op":"replace","path":"/spec/versions/1/storage","value":false}]`,
	)))).To(gomega.Succeed())
	stored := func() ([]string, error) {
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(definition), definition)
		return definition.Status.StoredVersions, err
	}
	g.Eventually(stored).Should(gomega.ConsistOf("v1beta1", "v1"))
	kubeconfig := e.kubeconfig() + "-admin"
	g.Expect(os.WriteFile(kubeconfig, cluster.KubeConfig(), 0o600)).To(gomega.Succeed())
	migration := exec.CommandContext(t.Context(), e.binary(), "migrate")
	migration.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	output, err := migration.CombinedOutput()
	g.Expect(err).NotTo(gomega.HaveOccurred(), string(output))
	g.Expect(string(output)).To(gomega.ContainSubstring("objects are stored as v1."))
	g.Expect(stored()).To(gomega.ConsistOf("v1"))
	g.Expect(read("v1alpha1")()).To(testenv.HavePath("spec.port", int64(8080)))

	// The conversion stays, because there are objects of several versions.
	operator.stop()
	operator.says("The conversion stays in the definition")
	g.Expect(stored()).To(gomega.ConsistOf("v1"))
	g.Expect(definition.Spec.Conversion.Strategy).To(gomega.Equal(apiextensionsv1.WebhookConverter))
	g.Expect(cluster.Client().Delete(t.Context(), sample)).To(gomega.Succeed())
}

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/test/testenv"
)

func testAdmission(t *testing.T, e *example) {
	g := gomega.NewWithT(t)
	serving := envtest.WebhookInstallOptions{}
	g.Expect(serving.PrepWithoutInstalling()).To(gomega.Succeed())
	t.Cleanup(func() { _ = serving.Cleanup() })
	e.arguments = []string{"-port", strconv.Itoa(serving.LocalServingPort), "-certificates", serving.LocalServingCertDir}
	operator := e.start(t)
	operator.says("The operator is running.")
	e.tellOfWebhooks(t, serving)

	without := e.variant(t, `{"spec":{"numbers":null},"metadata":{"name":"without-numbers"}}`)
	g.Expect(cluster.Current(without)()).To(testenv.HavePath("spec.numbers", []any{int64(1), int64(2), int64(3)}))
	sample := e.create(t)
	g.Expect(cluster.Current(sample)()).To(testenv.HavePath("spec.numbers", []any{int64(1), 2.5, int64(3)}))

	g.Expect(tryMerge(t, sample, `{"spec":{"numbers":[101]}}`)).To(gomega.MatchError(gomega.ContainSubstring("The number 101 is not between 0 and 100.")))
	g.Expect(tryMerge(t, sample, `{"spec":{"numbers":["many"]}}`)).To(gomega.MatchError(gomega.ContainSubstring("many is not a number.")))
	g.Expect(tryMerge(t, sample, `{"spec":{"numbers":5}}`)).To(gomega.MatchError(gomega.ContainSubstring("The numbers must be a list.")))

	status := client.RawPatch(client.Merge.Type(), []byte(`{"status":{"phase":"Lost"}}`))
	g.Expect(cluster.Client().Status().Patch(t.Context(), sample, status)).To(gomega.MatchError(gomega.ContainSubstring(`There is no phase "Lost".`)))
	g.Expect(cluster.Current(sample)()).To(gomega.SatisfyAll(testenv.HavePath("status", nil), haveNoTraces()))

	merge(t, sample, `{"metadata":{"labels":{"locked":"yes"}}}`)
	g.Expect(cluster.Client().Delete(t.Context(), sample)).To(gomega.MatchError(gomega.ContainSubstring("kopf-example-1 is locked.")))
	merge(t, sample, `{"metadata":{"labels":{"locked":null}}}`)
	g.Expect(cluster.Client().Delete(t.Context(), sample)).To(gomega.Succeed())
}

// tellOfWebhooks applies the configurations of the example: for its namespace, and
// with the address and the certificate of the operator.
func (e *example) tellOfWebhooks(t *testing.T, serving envtest.WebhookInstallOptions) {
	t.Helper()
	g := gomega.NewWithT(t)
	content, err := os.ReadFile(filepath.Join(e.dir, "webhooks.yaml"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	address := net.JoinHostPort(serving.LocalServingHost, strconv.Itoa(serving.LocalServingPort))
	content = bytes.ReplaceAll(content, []byte("127.0.0.1:9443"), []byte(address))
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		configuration := &unstructured.Unstructured{}
		g.Expect(yaml.UnmarshalStrict([]byte(document), &configuration.Object)).To(gomega.Succeed())
		for _, item := range configuration.Object["webhooks"].([]any) {
			webhook := item.(map[string]any)
			webhook["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: e.namespace}}
			webhook["clientConfig"].(map[string]any)["caBundle"] = serving.LocalServingCAData
		}
		typed, err := yaml.Marshal(configuration.Object) // the bundle becomes base64
		g.Expect(err).NotTo(gomega.HaveOccurred())
		configuration.Object = nil
		g.Expect(yaml.Unmarshal(typed, &configuration.Object)).To(gomega.Succeed())
		g.Expect(cluster.Client().Create(t.Context(), configuration)).To(gomega.Succeed())
		t.Cleanup(func() { _ = cluster.Client().Delete(context.Background(), configuration) })
	}
	// The API server takes notice of the two one after the other.
	number := 0
	g.Eventually(func() (string, error) {
		number++
		probe := e.sample(t)
		probe.SetName(fmt.Sprintf("probe-%d", number))
		probe.Object["spec"] = map[string]any{"numbers": "none"}
		rejected := cluster.Client().Create(t.Context(), probe, client.DryRunAll)
		probe.Object["spec"] = map[string]any{}
		err := cluster.Client().Create(t.Context(), probe, client.DryRunAll)
		return fmt.Sprint(rejected != nil, probe.Object["spec"]), err
	}).Should(gomega.Equal("true map[numbers:[1 2 3]]"))
}

func tryMerge(t *testing.T, object client.Object, patch string) error {
	t.Helper()
	return cluster.Client().Patch(t.Context(), object.DeepCopyObject().(client.Object), client.RawPatch(client.Merge.Type(), []byte(patch)))
}

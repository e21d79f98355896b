package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

func testIndexing(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	// All of this exists before the operator starts. The object is created first.
	object := e.create(t)
	first := e.pod(t, "web-1", "web", "busybox")
	second := e.pod(t, "web-2", "web", "nginx")
	database := e.pod(t, "db-1", "db", "postgres")
	address := testenv.FreeAddress(t)
	operator := e.startWith(t, []string{"--liveness=" + address})
	g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(
		testenv.HavePath("status.createFn.pods", int64(2)),
		haveReport([]any{"web-1", "web-2"}, []any{"busybox", "nginx", "postgres"})))

	g.Expect(fetched(t, "http://"+address+"/healthz")).To(gomega.MatchJSON(`{"imagesInUse":["busybox","nginx","postgres"]}`))

	merge(t, database, `{"metadata":{"labels":{"tier":"web"}}}`)
	g.Eventually(cluster.Current(object)).Should(haveReport([]any{"db-1", "web-1", "web-2"}, []any{"busybox", "nginx", "postgres"}))

	succeeded := client.RawPatch(client.Merge.Type(), []byte(`{"status":{"phase":"Succeeded"}}`))
	g.Expect(cluster.Client().Status().Patch(t.Context(), first, succeeded)).To(gomega.Succeed())
	g.Expect(cluster.Client().Delete(t.Context(), second)).To(gomega.Succeed())
	g.Eventually(cluster.Current(object)).Should(haveReport([]any{"db-1"}, []any{"busybox", "postgres"}))
	g.Expect(cluster.Current(database)()).To(haveNoTraces())
	operator.stop()
}

// pod creates a pod like the one in pod.yaml.
func (e *example) pod(t testing.TB, name, tier, image string) *unstructured.Unstructured {
	t.Helper()
	pod := e.read(t, "pod.yaml")
	pod.SetNamespace(e.namespace)
	pod.SetName(name)
	pod.SetLabels(map[string]string{"tier": tier})
	containers := []any{map[string]any{"name": "main", "image": image}}
	if err := unstructured.SetNestedSlice(pod.Object, containers, "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	return created(t, pod)
}

func haveReport(pods, images []any) types.GomegaMatcher {
	return gomega.SatisfyAll(testenv.HavePath("status.report.pods", pods), testenv.HavePath("status.report.images", images))
}

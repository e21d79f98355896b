package handling

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

type unstructuredObject = unstructured.Unstructured

func longText(length int) string { return strings.Repeat("x", length) }

// core creates an object of the core API.
func (b *bench) core(kind string, fields map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: fields}
	obj.SetAPIVersion("v1")
	obj.SetKind(kind)
	obj.SetNamespace(b.namespace)
	obj.SetName("one")
	return obj
}

// A ConfigMap has no status: a result is lost, and this is reported.
func TestConfigMapIsHandledWithoutItsResults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	maps := kopf.Resource("v1", "configmaps")
	fn := b.noted("fn", func(_ context.Context, c *kopf.Change) error {
		b.calls.Note("%s", c.Reason())
		c.SetResult("lost")
		return nil
	})
	b.OnCreate(maps, fn, kopf.ID("fn"))
	b.OnUpdate(maps, fn, kopf.ID("fn"))
	b.OnDelete(maps, fn, kopf.ID("fn"))
	b.start()
	obj := b.submit(b.core("ConfigMap", map[string]any{"data": map[string]any{"a": "1"}}))
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handled, gomega.ContainSubstring(`"1"`)))
	b.expectRest()
	b.patch(obj, `{"data":{"a":"2"}}`)
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handled, gomega.ContainSubstring(`"2"`)))
	b.expectRest()
	b.remove(obj)
	b.expectGone(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"fn 0", "create", "fn 0", "update", "fn 0", "delete"}))
	b.Eventually(b.logged("dropped fields", `"status.fn"`)).Should(gomega.HaveLen(1))
}

func TestPodIsHandledWithoutItsResults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	pods := kopf.Resource("v1", "pods")
	b.OnCreate(pods, b.noted("create", returning("lost")), kopf.ID("create"))
	b.OnField(pods, "status.phase", func(_ context.Context, c *kopf.Change) error {
		b.calls.Note("phase %s->%s", c.Old(), c.New())
		return nil
	}, kopf.ID("phase"))
	b.start()
	obj := b.submit(b.core("Pod", map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "main", "image": "busybox"}},
	}}))
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handled, gomega.ContainSubstring("Pending")))
	b.expectRest()
	b.patchStatus(obj, `{"status":{"phase":"Running"}}`)
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handled, gomega.ContainSubstring("Running")))
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create 0", "phase (absent)->Pending", "phase Pending->Running"}))
	b.Eventually(b.logged("dropped fields", `"status.create"`)).Should(gomega.HaveLen(1))
}

// Data that must not appear in annotations is stored as hashes.
func TestSecretsAndLargeObjectsAreStoredAsHashes(t *testing.T) {
	t.Parallel()
	secret := base64.StdEncoding.EncodeToString([]byte("canary-in-the-mine"))
	tests := map[string]struct {
		kind   string
		fields map[string]any
		patch  string
		field  string
	}{
		"a Secret": {
			"Secret",
			map[string]any{"data": map[string]any{"password": secret, "other": "eA=="}},
			`{"data":{"password":"eQ=="}}`, "data.password",
		},
		"a large object": {
			"ConfigMap",
			map[string]any{"data": map[string]any{"password": secret + longText(300<<10), "other": "x"}},
			`{"data":{"password":"y"}}`, "data.password",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnUpdate(kopf.Resource("v1", test.kind), func(_ context.Context, c *kopf.Change) error {
				for _, item := range c.Diff() {
					b.calls.Note("%s %s, known: %t", item.Op, item.Path, c.Old().Known())
				}
				return nil
			}, kopf.ID("update"))
			b.OnUpdate(kopf.Resource("v1", test.kind), b.noted("same", succeed), kopf.ID("same"),
				kopf.Field("data", "password"), kopf.ValueBefore(kopf.Equal(test.fields["data"].(map[string]any)["password"])))
			b.OnUpdate(kopf.Resource("v1", test.kind), b.noted("different", succeed), kopf.ID("different"),
				kopf.Field("data", "password"), kopf.ValueBefore(kopf.Equal("something else")))
			b.start()
			obj := b.submit(b.core(test.kind, test.fields))
			b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handled, gomega.Not(gomega.BeEmpty())))
			b.expectRest()
			annotations := fmt.Sprint(b.current(obj).GetAnnotations())
			b.Expect(annotations).NotTo(gomega.ContainSubstring(secret))
			b.Expect(annotations).NotTo(gomega.ContainSubstring("canary"))
			b.Expect(len(annotations)).To(gomega.BeNumerically("<", 16<<10))
			before := annotations

			b.patch(obj, test.patch)
			b.Eventually(func() string { return fmt.Sprint(b.current(obj).GetAnnotations()) }).ShouldNot(gomega.Equal(before))
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.Equal([]string{"change " + test.field + ", known: false", "same 0"}))
			b.Eventually(b.logged("Only hashes of the handled state are stored")).Should(gomega.HaveLen(1))
			b.Expect(b.logs.String()).NotTo(gomega.ContainSubstring(secret))
			events, err := cluster.Events(obj)()
			b.Expect(err).NotTo(gomega.HaveOccurred())
			b.Expect(fmt.Sprint(events)).NotTo(gomega.ContainSubstring(secret))
		})
	}
}

package handling

import (
	"context"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestOnlyConfiguredNamespacesAreHandled(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		scope   func(namespaces []string) []string
		handled []int
	}{
		"one of them":        {func(n []string) []string { return n[1:2] }, []int{1}},
		"two of them":        {func(n []string) []string { return n[:2] }, []int{0, 1}},
		"one of them, twice": {func(n []string) []string { return []string{n[2], n[2]} }, []int{2}},
		"a missing one":      {func([]string) []string { return []string{"not-there"} }, nil},
		"all of them":        {func([]string) []string { return nil }, []int{0, 1, 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			namespaces := []string{b.namespace, cluster.Namespace(t), cluster.Namespace(t)}
			twins := kopf.Resource("one.example.com", "twins")
			b.OnCreate(twins, func(_ context.Context, c *kopf.Change) error { b.calls.Note("%s", c.Namespace()); return nil }, kopf.ID("create"), b.ours())
			b.OnCreate(clusters, func(_ context.Context, c *kopf.Change) error { b.calls.Note("cluster"); return nil }, kopf.ID("create_cluster"), b.ours())
			b.start(func(o *kopf.Options) { o.Settings.Scope.Namespaces = test.scope(namespaces) })
			expected := []string{"cluster"}
			for _, index := range test.handled {
				expected = append(expected, namespaces[index])
			}
			for _, namespace := range namespaces {
				obj := testenv.NewObject("Twin", namespace, "one", nil)
				obj.SetAPIVersion("one.example.com/v1")
				b.submit(b.own(obj))
			}
			b.submit(b.own(testenv.NewObject("KopfCluster", "", b.namespace, nil)))
			b.Eventually(b.calls.All).Should(gomega.ConsistOf(expected))
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.ConsistOf(expected))
		})
	}
}

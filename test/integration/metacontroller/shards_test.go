package metacontroller

import (
	"fmt"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
)

// Replicas share the parents, and each hook is called by one of them.
func TestShards(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.on("sync", func(r *request) m {
		return m{"children": []m{child("ConfigMap", r.parent.GetName(), r.field())}, "status": m{"maps": len(r.names("children", "ConfigMap.v1"))}}
	})
	sharded := func(o *kopf.Options) {
		o.Settings.Name = "sharded"
		o.Settings.Replicas.Shards = 4
		o.Settings.Replicas.LeaseNamespace = b.namespace
	}
	replicas := []*operators.Operator{b.start(composite, sharded), b.start(composite, sharded)}
	b.Eventually(func() int { return len(replicas[1].State().Shards.Held) }).Should(gomega.Equal(2))
	const parents = 8
	expect := func(value string) {
		t.Helper()
		for i := range parents {
			b.eventually(b.named("v1", "ConfigMap", fmt.Sprintf("parent-%d", i)), m{"data.value": value})
			b.eventually(b.named("kopf.dev/v1", "KopfExample", fmt.Sprintf("parent-%d", i)), m{"status.maps": int64(1)})
		}
	}
	for i := range parents {
		b.create(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: parent-%d}, spec: {field: first}}`, i)
	}
	expect("first")
	replicas[0].Stop()
	for i := range parents {
		b.patch(b.named("kopf.dev/v1", "KopfExample", fmt.Sprintf("parent-%d", i)), `{"spec":{"field":"second"}}`)
	}
	expect("second")
}

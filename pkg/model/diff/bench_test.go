package diff_test

import (
	"fmt"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// deployment returns an essence of the usual size and depth.
func deployment() m {
	labels := m{}
	for i := range 8 {
		labels[fmt.Sprintf("example.com/label-%d", i)] = fmt.Sprintf("value-%d", i)
	}
	containers := []any{}
	for i := range 3 {
		containers = append(containers, m{
			"name": fmt.Sprintf("container-%d", i), "image": "registry.example.com/image:1.0",
			"ports":     []any{m{"containerPort": int64(8080), "protocol": "TCP"}},
			"resources": m{"limits": m{"cpu": "1", "memory": "1Gi"}, "requests": m{"cpu": "100m"}},
		})
	}
	return m{
		"metadata": m{"labels": labels, "annotations": m{"note": "text"}},
		"spec": m{"replicas": int64(3), "template": m{
			"metadata": m{"labels": labels}, "spec": m{"containers": containers},
		}},
	}
}

func BenchmarkComputeEqual(b *testing.B) {
	before, after := any(deployment()), any(deployment())
	b.ReportAllocs()
	for b.Loop() {
		diff.Compute(before, after, diff.Full)
	}
}

func BenchmarkComputeOneChange(b *testing.B) {
	before, after := deployment(), deployment()
	after["spec"].(m)["replicas"] = int64(4)
	b.ReportAllocs()
	for b.Loop() {
		diff.Compute(before, after, diff.Full)
	}
}

func BenchmarkReduce(b *testing.B) {
	items := diff.Compute(nil, deployment(), diff.Full)
	path := object.Path{"spec", "replicas"}
	b.ReportAllocs()
	for b.Loop() {
		items.Reduce(path)
	}
}

func BenchmarkEqualDeepLists(b *testing.B) {
	nest := func(leaf any) any {
		for range 12 {
			leaf = []any{m{"a": leaf, "b": "x"}}
		}
		return leaf
	}
	left, right := nest("x"), nest("x")
	b.ReportAllocs()
	for b.Loop() {
		diff.Equal(left, right)
	}
}

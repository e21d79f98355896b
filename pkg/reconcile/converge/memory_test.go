package converge

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// maxBytesPerChild is what a child may take at rest; there is no copy of it besides. The names and hashes of this test are as
// long as real ones.
const maxBytesPerChild = 900

func TestMemoryOfChildrenAtRest(t *testing.T) {
	const parents, children = 400, 5
	server := &cluster{objects: map[string]*unstructured.Unstructured{}}
	o := newOperator(server)
	before := heap()
	for p := range parents {
		owner := o.owner
		owner.Parent.UID = types.UID(fmt.Sprintf("8c8ad6ac-1c0d-4a4c-8b0e-2f1b9d%06d", p))
		owner.Parent.Key.Name = fmt.Sprint("shop-", p)
		s := o.begin(owner, false)
		for i := range children {
			f := readFact(childForMemory(owner, p, i), "kopf-test")
			o.observe(f, false)
			o.note(s, f)
		}
		o.end(s)
	}
	perChild := int(heap()-before) / (parents * children)
	runtime.KeepAlive(o)
	t.Logf("%d bytes per child", perChild)
	if perChild > maxBytesPerChild {
		t.Errorf("a child takes %d bytes, at most %d are allowed", perChild, maxBytesPerChild)
	}
}

func childForMemory(owner Owner, p, i int) *unstructured.Unstructured {
	ch := &child{content: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": fmt.Sprintf("shop-%d-part-%d", p, i), "namespace": "some-namespace"}}}
	u := &unstructured.Unstructured{Object: ch.mark(owner, false).content}
	u.SetUID(types.UID(fmt.Sprintf("1c8ad6ac-1c0d-4a4c-8b0e-%06d%06d", p, i)))
	u.SetResourceVersion(fmt.Sprint(1000000 + p*10 + i))
	return u
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

package converge

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// What a child may take at rest, and a child with an accepted field in addition; there is no copy
// of it besides. The names and hashes of this test are as long as real ones.
const (
	maxBytesPerChild         = 900
	maxBytesPerAcceptedField = 800
)

func TestMemoryOfChildrenAtRest(t *testing.T) {
	if plain := bytesPerChild(t, nil); plain > maxBytesPerChild {
		t.Errorf("a child takes %d bytes, at most %d are allowed", plain, maxBytesPerChild)
	}
	if accepting := bytesPerChild(t, accepted{"spec.replicas": hashOf(int64(3))}); accepting > maxBytesPerChild+maxBytesPerAcceptedField {
		t.Errorf("a child with an accepted field takes %d bytes, at most %d are allowed", accepting, maxBytesPerChild+maxBytesPerAcceptedField)
	}
}

// bytesPerChild measures children at rest, with the same accepted fields.
func bytesPerChild(t *testing.T, fields accepted) int {
	t.Helper()
	const parents, children = 400, 5
	server := &cluster{objects: map[string]*unstructured.Unstructured{}}
	o := newOperator(server)
	before := heap()
	for p := range parents {
		owner := o.owner
		owner.Parent.UID = types.UID(fmt.Sprintf("8c8ad6ac-1c0d-4a4c-8b0e-2f1b9d%06d", p))
		owner.Parent.Key.Name = fmt.Sprint("shop-", p)
		s := o.begin(owner, &o.options, false)
		for i := range children {
			f := readFact(childForMemory(owner, p, i, fields), "kopf-test")
			o.observe(f, false)
			o.note(s, f)
		}
		o.end(s, nil)
	}
	perChild := int(heap()-before) / (parents * children)
	runtime.KeepAlive(o)
	t.Logf("%d bytes per child", perChild)
	return perChild
}

func childForMemory(owner Owner, p, i int, fields accepted) *unstructured.Unstructured {
	ch := &child{content: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": fmt.Sprintf("shop-%d-part-%d", p, i), "namespace": "some-namespace"}, "spec": map[string]any{"replicas": int64(3)}}}
	u := &unstructured.Unstructured{Object: ch.mark(owner, false, fields).content}
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

// What is not decided about a child is forgotten when it is decided, or the child is not wanted.
func TestDecisionsLeaveNothing(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	s := o.begin(o.owner, &o.options, true)
	r := newRun(o.Converger, Call{Owner: o.owner}, s)
	one, two := Key{Name: "one"}, Key{Name: "two"}
	field := convergence.DriftedField{Path: "data.a"}
	for _, key := range []Key{one, two} {
		s.known[key] = &fact{Key: key, uid: types.UID(key.Name)}
	}
	r.decisions.noteFields(one, []convergence.DriftedField{field}, errors.New("no"))
	if !r.decisions.areFailing(one) || !r.decisions.isFailing(one, field) {
		t.Error("the failure is forgotten")
	}
	r.decisions.noteDeletion("two")
	for _, key := range []Key{one, two} {
		s.lose(key, types.UID(key.Name))
	}
	if !r.decisions.isLost(one) || r.decisions.isLost(two) || r.decisions.areFailing(one) {
		t.Errorf("got %+v", s.unresolved)
	}
	o.retain(s, map[Key]bool{one: true})
	if !r.decisions.isLost(one) {
		t.Error("a wanted child is forgotten")
	}
	o.retain(s, map[Key]bool{two: true})
	if s.unresolved != nil {
		t.Errorf("got %+v", s.unresolved)
	}
	r.decisions.noteFields(one, []convergence.DriftedField{field}, errors.New("no"))
	r.decisions.noteFields(one, []convergence.DriftedField{field}, nil)
	r.decisions.noteDeletion("one")
	s.forgetDeletion("one")
	if s.unresolved != nil {
		t.Errorf("got %+v", s.unresolved)
	}
}

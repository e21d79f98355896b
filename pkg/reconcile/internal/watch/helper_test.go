package watch

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

var kex = discovery.SelectedResource{
	Resource: selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Namespaced: true},
}

func keyOf(name string) object.Key {
	return object.Key{Resource: "kopfexamples.v1.kopf.dev", NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

func seen(t *testing.T, uid, version string) *object.Snapshot {
	t.Helper()
	s, err := object.ParseSnapshot([]byte(`{"metadata":{"namespace":"ns","name":"a","uid":"` + uid + `","resourceVersion":"` + version + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// recorder is a consumer that records its calls.
type recorder struct {
	needsPatch bool
	mu         sync.Mutex
	events     []string
	indexed    func(event object.WatchEvent) // nil for nothing
}

func (r *recorder) SetUp(_ context.Context, found discovery.SelectedResource) (*Resource, error) {
	return NewResource(found, nil), nil
}

func (r *recorder) NeedsPatch(discovery.SelectedResource) bool { return r.needsPatch }

func (r *recorder) Index(_ context.Context, _ *Resource, event object.WatchEvent) {
	if r.indexed != nil {
		r.indexed(event)
	}
}

func (r *recorder) Observe(_ context.Context, _ *Resource, event object.WatchEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := string(event.Type)
	if kind == "" {
		kind = "LISTED"
	}
	r.events = append(r.events, kind+" "+event.Snapshot.GetResourceVersion())
}

func (r *recorder) BeginAnew(*Resource, object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, "ANEW")
}

func (r *recorder) ObserveChild(child *unstructured.Unstructured, gone bool) {
	line := "CHILD " + child.GetName() + " " + child.GetResourceVersion()
	if gone {
		line += " IS GONE"
	}
	r.events = append(r.events, line)
}

func (r *recorder) ReplaceChildren(_ func(convergence.ChildKey) bool, all []*unstructured.Unstructured, version string, another bool) {
	line := fmt.Sprintf("REPLACED %d AT %s", len(all), version)
	if another {
		line += ", ANEW"
	}
	r.events = append(r.events, line)
}

func (r *recorder) LeaveChildren() { r.events = append(r.events, "CHILDREN LEFT") }

func (r *recorder) Forget(context.Context, *Resource, object.StreamKey) {}

// addStream adds a disconnected stream to a resource.
func addStream(t *testing.T, r *Resource, namespace string) *Stream {
	t.Helper()
	s := NewStream(t.Context(), r, namespace, &recorder{})
	r.Add(s)
	return s
}

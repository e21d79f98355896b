package release

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

const (
	prefix    = "kopf.zalando.org/"
	finalizer = prefix + "KopfFinalizerMarker"
	base      = `"kopf.zalando.org/last-handled-configuration":"{}"`
	record    = `"kopf.zalando.org/fn":"{\"started\":\"2026-01-01T00:00:00\",\"purpose\":\"create\",\"retries\":1}"`
	foreign   = `"kopf.zalando.org/other":"{\"started\":\"2026-01-01T00:00:00\",\"purpose\":\"create\",\"retries\":1}"`
)

var verbs = []string{"list", "watch", "patch"}

var (
	things = selector.Resource{Group: "example.com", Version: "v1", Plural: "things", Singular: "thing", Kind: "Thing", Namespaced: true, Preferred: true, Verbs: verbs, Status: true}
	bare   = selector.Resource{Group: "example.com", Version: "v1", Plural: "bares", Singular: "bare", Kind: "Bare", Namespaced: true, Preferred: true, Verbs: verbs}
)

// parse parses an object of a resource.
func parse(t *testing.T, r selector.Resource, name, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	obj.SetGroupVersionKind(r.GVK())
	obj.SetName(name)
	if obj.GetNamespace() == "" && r.Namespaced {
		obj.SetNamespace("default")
	}
	if obj.GetUID() == "" {
		obj.SetUID("u-1")
	}
	return obj
}

// traced is an object with the finalizer, the base, and a record.
const traced = `{"metadata":{"resourceVersion":"1","finalizers":["` + finalizer + `"],"annotations":{` + base + `,` + record + `}}}`

// newReleaser returns a releaser for handlers fn of both resources, on a cluster in memory that
// compares no versions.
func newReleaser(t *testing.T, objects ...*unstructured.Unstructured) (*Releaser, *fake.FakeDynamicClient) {
	t.Helper()
	present := make([]runtime.Object, len(objects))
	for i, obj := range objects {
		present[i] = obj
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		things.GVR(): "ThingList", bare.GVR(): "BareList",
		{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}:   "LeaseList",
		{Group: "kopf.dev", Version: "v1", Resource: "clusterkopfpeerings"}: "ClusterKopfPeeringList",
		{Group: "kopf.dev", Version: "v1", Resource: "kopfpeerings"}:        "KopfPeeringList",
	}, present...)
	selectors := []selector.Selector{selector.New("example.com", "v1", "things"), selector.New("example.com", "v1", "bares")}
	r := &Releaser{reading: client, writing: client, served: discovery.Snapshot{Resources: []selector.Resource{things, bare, pods, peerings, clusterPeerings}}}
	for _, sel := range selectors {
		r.Handlers = append(r.Handlers, &handler.Declaration{ID: "fn", Kind: handler.OnCreate, Selector: sel})
	}
	r.Settings, r.OperatorStopped = r.Settings.WithDefaults(), true
	r.resources = discovery.Resolve(selectors, r.served).Resources
	return r, client
}

var (
	pods            = selector.Resource{Version: "v1", Plural: "pods", Singular: "pod", Kind: "Pod", Namespaced: true, Preferred: true, Verbs: verbs}
	peerings        = selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfpeerings", Kind: "KopfPeering", Namespaced: true, Preferred: true, Verbs: verbs}
	clusterPeerings = selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "clusterkopfpeerings", Kind: "ClusterKopfPeering", Preferred: true, Verbs: verbs}
)

package discovery_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// server answers like an API server.
type server struct {
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
	err    error
}

func (s server) ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return s.groups, s.lists, s.err
}

// group returns an API group whose first version is the preferred one.
func group(name string, versions ...string) *metav1.APIGroup {
	g := &metav1.APIGroup{Name: name}
	for _, v := range versions {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{Version: v})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

func list(groupVersion string, names ...string) *metav1.APIResourceList {
	l := &metav1.APIResourceList{GroupVersion: groupVersion}
	for _, name := range names {
		l.APIResources = append(l.APIResources, metav1.APIResource{Name: name, Verbs: []string{"list", "watch"}})
	}
	return l
}

func scan(t *testing.T, s server) discovery.Snapshot {
	t.Helper()
	snapshot, err := discovery.Scan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func TestScan(t *testing.T) {
	example := list("kopf.dev/v1", "kopfexamples/status", "kopfexamples", "kopfexamples/scale", "orphans/status")
	example.APIResources[1] = metav1.APIResource{
		Name: "kopfexamples", SingularName: "kopfexample", Kind: "KopfExample", Namespaced: true,
		ShortNames: []string{"kex"}, Categories: []string{"all"}, Verbs: []string{"get", "list", "watch"},
	}
	snapshot := scan(t, server{groups: []*metav1.APIGroup{group("kopf.dev", "v1")}, lists: []*metav1.APIResourceList{example}})
	if len(snapshot.Resources) != 1 || len(snapshot.Failed) != 0 {
		t.Fatalf("got %+v", snapshot)
	}
	r := snapshot.Resources[0]
	if r.String() != "kopfexamples.v1.kopf.dev" || r.Kind != "KopfExample" || r.Singular != "kopfexample" || !r.Namespaced ||
		!slices.Equal(r.ShortNames, []string{"kex"}) || !slices.Equal(r.Categories, []string{"all"}) || !r.Can("get", "list", "watch") {
		t.Errorf("the resource is incomplete: %+v", r)
	}
	if !r.Status || !slices.Equal(r.Subresources, []string{"status", "scale"}) {
		t.Errorf("the subresources are not joined: %+v", r)
	}
}

// kubectl and Kopf select such resources by their kind, too.
func TestScanWithoutASingularName(t *testing.T) {
	example := list("kopf.dev/v1", "kopfexamples")
	example.APIResources[0].Kind = "KopfExample"
	snapshot := scan(t, server{groups: []*metav1.APIGroup{group("kopf.dev", "v1")}, lists: []*metav1.APIResourceList{example}})
	if got := snapshot.Resources[0].Singular; got != "kopfexample" {
		t.Errorf("got %q", got)
	}
}

func TestScanPreference(t *testing.T) {
	snapshot := scan(t, server{
		groups: []*metav1.APIGroup{group("", "v1"), group("kopf.dev", "v2", "v1", "v1beta1")},
		lists: []*metav1.APIResourceList{ // in no order, as from the server
			list("kopf.dev/v1beta1", "everywhere", "old", "oldest"),
			list("v1", "everywhere"),
			list("kopf.dev/v2", "everywhere"),
			list("kopf.dev/v1", "everywhere", "old"),
		},
	})
	preferred := map[string]bool{
		"everywhere.v1":               true,
		"everywhere.v1.kopf.dev":      false,
		"everywhere.v1beta1.kopf.dev": false,
		"everywhere.v2.kopf.dev":      true,
		"old.v1.kopf.dev":             true, // because v2 lacks it
		"old.v1beta1.kopf.dev":        false,
		"oldest.v1beta1.kopf.dev":     true,
	}
	var order []string
	for _, r := range snapshot.Resources {
		order = append(order, r.String())
		if r.Preferred != preferred[r.String()] {
			t.Errorf("%s is preferred: %v", r, r.Preferred)
		}
	}
	want := []string{
		"everywhere.v1", "everywhere.v1.kopf.dev", "everywhere.v1beta1.kopf.dev", "everywhere.v2.kopf.dev",
		"old.v1.kopf.dev", "old.v1beta1.kopf.dev", "oldest.v1beta1.kopf.dev",
	}
	if !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
}

func TestScanWhileGroupsAreUnavailable(t *testing.T) {
	down := errors.New("no endpoints")
	metrics := schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"}
	removed := schema.GroupVersion{Group: "gone.dev", Version: "v1"}
	snapshot := scan(t, server{
		groups: []*metav1.APIGroup{group("", "v1")},
		lists:  []*metav1.APIResourceList{list("v1", "pods")},
		err: &clientdiscovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{
			metrics: down,
			removed: apierrors.NewNotFound(schema.GroupResource{}, "removed while it was listed"),
		}},
	})
	if len(snapshot.Resources) != 1 {
		t.Errorf("got %v, want the available resource", snapshot.Resources)
	}
	if len(snapshot.Failed) != 1 || !errors.Is(snapshot.Failed[metrics], down) {
		t.Errorf("failed are %v", snapshot.Failed)
	}
}

func TestScanErrors(t *testing.T) {
	refused := errors.New("connection refused")
	tests := map[string]struct {
		server   server
		canceled bool
		want     error
	}{
		"the server is unavailable":        {server: server{err: refused}, want: refused},
		"the operator stops":               {server: server{err: &clientdiscovery.ErrGroupDiscoveryFailed{}}, canceled: true},
		"the server offers an invalid API": {server: server{lists: []*metav1.APIResourceList{list("a/b/c", "pods")}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.canceled {
				cancel()
			}
			_, err := discovery.Scan(ctx, test.server)
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestNewSourceRejectsAnInvalidConfig(t *testing.T) {
	if _, err := discovery.NewSource(&rest.Config{Host: "::"}, http.DefaultClient); err == nil {
		t.Error("got no error")
	}
}

var _ discovery.Source = discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) {
	return discovery.Snapshot{Resources: []selector.Resource{{Plural: "pods"}}}, nil
})

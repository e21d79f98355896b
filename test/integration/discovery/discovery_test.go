package discovery

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

func scan(t *testing.T) discovery.Snapshot {
	t.Helper()
	config := cluster.Config()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	source, err := discovery.NewSource(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := source.Resources(context.Background()) // works in cleanup functions, too
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// settled returns a scan that includes the definitions of this test: the API server takes a
// moment to serve new ones.
func settled(t *testing.T) discovery.Snapshot {
	t.Helper()
	var snapshot discovery.Snapshot
	gomega.NewWithT(t).Eventually(func() int {
		snapshot = scan(t)
		return len(selector.By(selector.Fields{Plural: "kopfexamples"}).Select(snapshot.Resources)) +
			len(selector.New("oldtimers").Select(snapshot.Resources)) - len(snapshot.Failed)
	}).Should(gomega.Equal(3))
	return snapshot
}

func find(t *testing.T, in discovery.Snapshot, name string) selector.Resource {
	t.Helper()
	i := slices.IndexFunc(in.Resources, func(r selector.Resource) bool { return r.String() == name })
	if i < 0 {
		t.Fatalf("%s is not among the resources", name)
	}
	return in.Resources[i]
}

func TestScan(t *testing.T) {
	g := gomega.NewWithT(t)
	snapshot := settled(t)
	kex := find(t, snapshot, "kopfexamples.v1.kopf.dev")
	g.Expect(kex).To(gomega.Equal(selector.Resource{
		Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Singular: "kopfexample",
		ShortNames: []string{"kex", "kexes"}, Categories: []string{"examples"},
		Namespaced: true, Preferred: true, Status: true, Subresources: []string{"status"},
		Verbs: []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"},
	}))
	old := find(t, snapshot, "kopfexamples.v1beta1.kopf.dev")
	g.Expect([]bool{old.Preferred, old.Status}).To(gomega.Equal([]bool{false, false}))
	g.Expect(find(t, snapshot, "oldtimers.v1alpha1.kopf.dev").Preferred).To(gomega.BeTrue())

	pods := find(t, snapshot, "pods.v1")
	g.Expect(pods.Status).To(gomega.BeTrue())
	g.Expect(pods.Subresources).To(gomega.ContainElements("log", "exec", "status"))
	g.Expect(find(t, snapshot, "bindings.v1").Can("watch")).To(gomega.BeFalse())
}

// TestScanSupportsOlderServers checks that the discovery format from before Kubernetes 1.27
// has the same result.
func TestScanSupportsOlderServers(t *testing.T) {
	g := gomega.NewWithT(t)
	want := settled(t)
	legacy, err := clientdiscovery.NewDiscoveryClientForConfig(cluster.Config())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	legacy.UseLegacyDiscovery = true
	snapshot, err := discovery.Scan(t.Context(), legacy)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for i := range want.Resources {
		slices.Sort(want.Resources[i].Subresources)
	}
	for i := range snapshot.Resources {
		slices.Sort(snapshot.Resources[i].Subresources)
	}
	g.Expect(snapshot.Resources).To(gomega.Equal(want.Resources))
}

func TestResolve(t *testing.T) {
	snapshot := settled(t)
	tests := map[string]struct {
		selector selector.Selector
		want     []string
		warning  any
	}{
		"a short name":                        {selector.New("kex"), []string{"kopfexamples.v1.kopf.dev"}, nil},
		"a kind in a version":                 {selector.New("kopf.dev/v1beta1", "KopfExample"), []string{"kopfexamples.v1beta1.kopf.dev"}, nil},
		"a resource of an outdated version":   {selector.New("oldtimer"), []string{"oldtimers.v1alpha1.kopf.dev"}, nil},
		"a name of two groups":                {selector.New("kopfexamples"), nil, new(*selector.AmbiguousError)},
		"a category":                          {selector.By(selector.Fields{Category: "examples"}), []string{"kopfexamples.v1.kopf.dev"}, nil},
		"everything in a group":               {selector.New("kopf.dev", selector.Everything), []string{"kopfexamples.v1.kopf.dev", "oldtimers.v1alpha1.kopf.dev"}, nil},
		"events, which another group has too": {selector.New("events"), []string{"events.v1"}, nil},
		"a built-in type of Go":               {selector.Exact(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}), []string{"deployments.v1.apps"}, nil},
		"a resource that is only created":     {selector.New("tokenreviews"), nil, new(*discovery.UnwatchableError)},
		"a resource that is not installed":    {selector.New("nosuch"), nil, new(*selector.NotFoundError)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := discovery.Resolve([]selector.Selector{test.selector}, snapshot)
			if served := names(got); !slices.Equal(served, test.want) {
				t.Errorf("served are %v, want %v", served, test.want)
			}
			warning := errors.Join(got.Warnings...)
			if test.warning == nil && warning != nil || test.warning != nil && !errors.As(warning, test.warning) {
				t.Errorf("got the warning %v, want %T", warning, test.warning)
			}
		})
	}
}

// TestScanSurvivesAnUnavailableAPIService registers an API without a running server, as
// happens with metrics servers.
func TestScanSurvivesAnUnavailableAPIService(t *testing.T) {
	g := gomega.NewWithT(t)
	down := schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"}
	breakAPI(t, down)
	snapshot := scan(t)
	g.Expect(snapshot.Failed[down]).To(gomega.MatchError(gomega.ContainSubstring("does not answer")))

	got := discovery.Resolve([]selector.Selector{
		selector.New("pods"), selector.New("kopf.dev", "kopfexamples"), selector.New("metrics.k8s.io", "pods"),
	}, snapshot)
	g.Expect(names(got)).To(gomega.Equal([]string{"pods.v1", "kopfexamples.v1.kopf.dev"}))
	var incomplete *discovery.IncompleteError
	g.Expect(errors.As(errors.Join(got.Warnings...), &incomplete)).To(gomega.BeTrue())
	g.Expect(incomplete.Unavailable).To(gomega.Equal([]schema.GroupVersion{down}))
	g.Expect(incomplete.Selector).To(gomega.Equal(selector.New("metrics.k8s.io", "pods")))
}

// The operator watches its resources while another API is unavailable, and the rest as soon as
// it is available.
func TestOperatorWorksWhileAnAPIServiceIsDown(t *testing.T) {
	g, registry, called := gomega.NewWithT(t), kopf.NewRegistry(), make(chan string, 10)
	settled(t)
	note := func(_ context.Context, c *kopf.Change) error { called <- c.Resource().String(); return nil }
	registry.OnCreate(kopf.Resource("example.com", "kopfexamples"), note, kopf.ID("does_not_need_it"))
	registry.OnCreate(kopf.Resource("kopf.dev", "oldtimers"), note, kopf.ID("needs_it")) // the version is unknown
	down := schema.GroupVersion{Group: "kopf.dev", Version: "v9"}
	service := apiService(down)
	g.Expect(cluster.Client().Create(t.Context(), service)).To(gomega.Succeed())
	g.Eventually(func() map[schema.GroupVersion]error { return scan(t).Failed }).Should(gomega.HaveKey(down))

	namespace := cluster.Namespace(t)
	operators.Start(t, cluster.Config(), namespace, registry, func(o *kopf.Options) { o.Settings.Scanning.Interval = time.Second })
	old := testenv.NewObject("OldTimer", namespace, "one", nil)
	old.SetAPIVersion("kopf.dev/v1alpha1")
	g.Expect(cluster.Client().Create(t.Context(), old)).To(gomega.Succeed())
	other := testenv.NewObject("KopfExample", namespace, "one", nil)
	other.SetAPIVersion("example.com/v1")
	g.Expect(cluster.Client().Create(t.Context(), other)).To(gomega.Succeed())
	g.Eventually(called).Should(gomega.Receive(gomega.Equal("kopfexamples.v1.example.com")))
	g.Consistently(called, "500ms").ShouldNot(gomega.Receive())
	g.Expect(cluster.Client().Delete(t.Context(), service)).To(gomega.Succeed())
	g.Eventually(called).Should(gomega.Receive(gomega.Equal("oldtimers.v1alpha1.kopf.dev")))
}

// While a definition is deleted, the API server offers no patches, but accepts them: until the
// deletion handlers have finished, also those of an operator that starts meanwhile.
func TestObjectsOfADeletedDefinitionAreFinished(t *testing.T) {
	for name, startsLate := range map[string]bool{"a running operator": false, "an operator that starts later": true} {
		t.Run(name, func(t *testing.T) {
			g, calls := gomega.NewWithT(t), make(chan string, 10)
			definition := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "endings.endings.dev"},
				"spec": map[string]any{
					"group": "endings.dev", "scope": "Namespaced", "names": map[string]any{"plural": "endings", "kind": "Ending"},
					"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
				},
			}}
			g.Expect(cluster.Client().Create(t.Context(), definition)).To(gomega.Succeed())
			namespace := cluster.Namespace(t)
			object := testenv.NewObject("Ending", namespace, "one", nil)
			object.SetAPIVersion("endings.dev/v1")
			object.SetFinalizers([]string{"kopf.zalando.org/KopfFinalizerMarker"})
			g.Eventually(func() error { return cluster.Client().Create(t.Context(), object.DeepCopy()) }).Should(gomega.Succeed())
			remove := func() {
				g.Expect(cluster.Client().Delete(t.Context(), definition)).To(gomega.Succeed())
				g.Eventually(func() bool {
					found := scan(t).Resources
					i := slices.IndexFunc(found, func(r selector.Resource) bool { return r.Plural == "endings" })
					return i >= 0 && !found[i].Can("patch") && discovery.IsTerminating(found[i])
				}).Should(gomega.BeTrue())
			}
			if startsLate {
				remove()
			}
			registry, attempts := kopf.NewRegistry(), 0
			registry.OnDelete(kopf.Resource("endings.dev", "endings"), func(_ context.Context, c *kopf.Change) error {
				calls <- c.Name()
				if attempts++; attempts == 1 {
					return kopf.Temporary(errors.New("not now"), 4*time.Second)
				}
				return nil
			}, kopf.ID("cleanup"))
			operators.Start(t, cluster.Config(), namespace, registry, func(o *kopf.Options) { o.Settings.Scanning.Interval = time.Second })
			if !startsLate {
				remove()
			}
			g.Eventually(calls, "10s").Should(gomega.Receive())
			g.Eventually(calls, "20s").Should(gomega.Receive())
			g.Eventually(func() error {
				return cluster.Client().Get(t.Context(), client.ObjectKeyFromObject(definition), definition.DeepCopy())
			}, "20s").Should(gomega.MatchError(apierrors.IsNotFound, "IsNotFound"))
		})
	}
}

// breakAPI registers an API without a server for the duration of the test.
func breakAPI(t *testing.T, gv schema.GroupVersion) {
	t.Helper()
	g := gomega.NewWithT(t)
	failed := func() map[schema.GroupVersion]error { return scan(t).Failed }

	service := apiService(gv)
	g.Expect(cluster.Client().Create(t.Context(), service)).To(gomega.Succeed())
	g.Eventually(failed).Should(gomega.HaveKey(gv))
	t.Cleanup(func() {
		g.Expect(cluster.Client().Delete(context.Background(), service)).To(gomega.Succeed())
		g.Eventually(failed).Should(gomega.BeEmpty())
	})
}

func apiService(gv schema.GroupVersion) client.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1",
		"kind":       "APIService",
		"metadata":   map[string]any{"name": gv.Version + "." + gv.Group},
		"spec": map[string]any{
			"group": gv.Group, "version": gv.Version, "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": "default", "name": "nobody"},
		},
	}}
}

func names(r discovery.Resolution) []string {
	var list []string
	for _, s := range r.Resources {
		list = append(list, s.String())
	}
	return list
}

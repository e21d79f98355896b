package peering

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestOperatorsOfDifferentPeeringsDoNotSeeEachOther(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace, other := cluster.Namespace(t), cluster.Namespace(t)
	for _, name := range []string{"default", "mine"} {
		create(t, cluster, api, namespace, name)
	}
	create(t, cluster, api, other, "default")
	create(t, cluster, api, "", namespace)
	all := map[string]*operator{
		"same namespace":  runPeering(t, cluster.Config(), "a", settings.Peering{}, namespace),
		"other namespace": runPeering(t, cluster.Config(), "b", settings.Peering{}, other),
		"other name":      runPeering(t, cluster.Config(), "c", settings.Peering{Name: "mine", Mandatory: true}, namespace),
		"cluster":         runPeering(t, cluster.Config(), "d", settings.Peering{Name: namespace}),
		"standalone":      runPeering(t, cluster.Config(), "e", settings.Peering{Standalone: true}, namespace),
		"missing object":  runPeering(t, cluster.Config(), "f", settings.Peering{Name: "absent"}, namespace),
	}
	for name, o := range all {
		g.Eventually(o.history).Should(gomega.Equal([]string{"active"}), name)
	}
	g.Consistently(func() (notifications int) {
		for _, o := range all {
			notifications += len(o.history())
		}
		return notifications
	}, time.Second).Should(gomega.Equal(len(all)))
	spanning := runPeering(t, cluster.Config(), "g", settings.Peering{Priority: 1}, namespace, other)
	g.Eventually(spanning.history).Should(gomega.Equal([]string{"active"}))
	g.Eventually(all["same namespace"].history).Should(gomega.Equal([]string{"active", "paused"}))
	g.Eventually(all["other namespace"].history).Should(gomega.Equal([]string{"active", "paused"}))
}

func TestOldGroupIsUsedIfItHasTheObject(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace := cluster.Namespace(t)
	object := create(t, cluster, oldAPI, namespace, "default")
	o := runPeering(t, cluster.Config(), "me", settings.Peering{Mandatory: true}, namespace)
	g.Eventually(o.history).Should(gomega.Equal([]string{"active"}))
	g.Expect(entries(cluster, object)()).To(gomega.HaveKey("me"))
}

func TestObjectsOfBothGroupsAreUsed(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace := cluster.Namespace(t)
	target := peering.Target{Name: "default", Namespace: namespace}
	first, second := create(t, cluster, api, namespace, "default"), create(t, cluster, oldAPI, namespace, "default")
	o := runPeering(t, cluster.Config(), "me", settings.Peering{Mandatory: true}, namespace)
	g.Eventually(o.history).Should(gomega.Equal([]string{"active"}))
	for _, object := range []*unstructured.Unstructured{first, second} {
		g.Expect(entries(cluster, object)()).To(gomega.HaveKey("me"), "before the operator is active")
		setEntry(t, object, "high", map[string]any{"priority": 1, "lifetime": 3600, "lastseen": time.Now().UTC().Format(time.RFC3339)})
		g.Eventually(o.last).Should(gomega.Equal("paused"))
		setEntry(t, object, "high", nil)
		g.Eventually(o.last).Should(gomega.Equal("active"))
	}

	freeze := peering.FreezeOptions{Identity: "freeze", Lifetime: time.Hour}
	g.Expect(peering.Freeze(t.Context(), cluster.Config(), target, freeze)).To(gomega.Equal(peering.Frozen{Paused: []string{"me"}}))
	g.Eventually(o.last).Should(gomega.Equal("paused"))
	setEntry(t, first, "freeze", nil)
	g.Expect(peering.Resume(t.Context(), cluster.Config(), target, "freeze")).To(gomega.Succeed(), "the other group has it")
	g.Eventually(o.last).Should(gomega.Equal("active"))
	g.Expect(entries(cluster, second)()).To(gomega.HaveLen(1))

	before := len(o.history())
	g.Expect(cluster.Client().Delete(t.Context(), first)).To(gomega.Succeed())
	g.Consistently(o.history, time.Second).Should(gomega.HaveLen(before), "one object is enough")
	o.stop()
	g.Expect(entries(cluster, second)()).To(gomega.BeEmpty())
}

func TestPeeringObjectIsCreatedAndDeleted(t *testing.T) {
	tests := map[string]struct {
		mandatory bool
		alone     string
	}{
		"optional":  {false, "active"},
		"mandatory": {true, "paused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			namespace := cluster.Namespace(t)
			s := settings.Peering{Mandatory: test.mandatory}
			o := runPeering(t, cluster.Config(), "me", s, namespace)
			g.Eventually(o.last).Should(gomega.Equal(test.alone))
			for range 2 {
				object := create(t, cluster, api, namespace, "default")
				g.Eventually(entries(cluster, object)).Should(gomega.HaveKey("me"))
				g.Eventually(o.last).Should(gomega.Equal("active"))
				high := runPeering(t, cluster.Config(), "high", settings.Peering{Priority: 1}, namespace)
				g.Eventually(o.last).Should(gomega.Equal("paused"))
				g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
				g.Eventually(o.last).Should(gomega.Equal(test.alone))
				high.stop()
			}
		})
	}
}

func TestResourceIsInstalledLater(t *testing.T) {
	g := gomega.NewWithT(t)
	bare := testenv.Start(t, testenv.Options{CRDs: []string{}})
	namespace := bare.Namespace(t)
	needing := runPeering(t, bare.Config(), "needing", settings.Peering{Mandatory: true, Lifetime: shortLifetime}, namespace)
	g.Eventually(needing.history).Should(gomega.Equal([]string{"paused"}))
	g.Expect(needing.lines()).To(gomega.ContainElement(gomega.ContainSubstring("install the definitions of peering")))
	using := runPeering(t, bare.Config(), "using", settings.Peering{Priority: 1, Lifetime: shortLifetime}, namespace)
	g.Eventually(using.history).Should(gomega.Equal([]string{"active"}))
	g.Expect(using.lines()).To(gomega.BeEmpty(), "an optional peering may be missing")

	// This definition has a status subresource.
	_, err := envtest.InstallCRDs(bare.Config(), envtest.CRDInstallOptions{Paths: []string{filepath.Join("testdata", "subresource")}, ErrorIfPathMissing: true})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	object := create(t, bare, api, namespace, "default")
	g.Eventually(entries(bare, object)).Should(gomega.And(gomega.HaveKey("needing"), gomega.HaveKey("using")))
	g.Eventually(needing.last).Should(gomega.Equal("paused"), "the other operator has a higher priority")
	using.stop()
	g.Eventually(needing.last).Should(gomega.Equal("active"))
	g.Expect(entries(bare, object)()).NotTo(gomega.HaveKey("using"))

	err = envtest.UninstallCRDs(bare.Config(), envtest.CRDInstallOptions{Paths: []string{filepath.Join("testdata", "subresource")}})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Eventually(needing.last).Should(gomega.Equal("paused"))
}

func TestDefinitionWithoutSchema(t *testing.T) {
	g := gomega.NewWithT(t)
	free := testenv.Start(t, testenv.Options{CRDs: []string{"config/crd/schemaless"}})
	namespace := free.Namespace(t)
	object := newObject(api, namespace, "default")
	object.Object["status"] = map[string]any{"a note": "of a person"}
	g.Expect(free.Client().Create(t.Context(), object)).To(gomega.Succeed())
	o := runPeering(t, free.Config(), "me", settings.Peering{}, namespace)
	g.Eventually(o.history).Should(gomega.Equal([]string{"active"}))
	o.stop()
	g.Expect(entries(free, object)()).To(gomega.Equal(map[string]any{"a note": "of a person"}))
	g.Expect(o.lines()).To(gomega.ContainElement(gomega.ContainSubstring("a note: the entry is a string, not an object")))
}

package ensure

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// withBriefWatches ends the watches often, as the API server does after minutes.
func withBriefWatches(o *kopf.Options) {
	o.Settings.Watching.ServerTimeout = time.Second
	o.Settings.Watching.ReconnectBackoff, o.Settings.Watching.ReconnectLimit = 10*time.Millisecond, 100*time.Millisecond
}

// watchesOfChildren returns the states of the watches of children.
func watchesOfChildren(o *operators.Operator) func() []kopf.WatchState {
	return func() (found []kopf.WatchState) {
		for _, w := range o.State().Watches {
			if w.Children {
				found = append(found, w)
			}
		}
		return found
	}
}

// Nothing that happens to the children is seen then, so everybody must see that.
func TestWatchOfChildrenThatFailsIsVisible(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, theme, kopf.ID("children"))
	faults := testenv.Strike(b.config)
	operator := b.start(withBriefWatches)
	b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	b.Eventually(watchesOfChildren(operator)).Should(gomega.ConsistOf(gomega.Equal(kopf.WatchState{Resource: "configmaps.v1", Namespace: b.namespace, Listed: true, Children: true})), b.story)

	var refused atomic.Int64
	faults.Begin(func(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
		refused.Add(1)
		return testenv.Answer(http.StatusForbidden, "Forbidden", 0)(sent, next)
	}, func(r testenv.Request) bool {
		return r.Resource == "configmaps" && (r.Method == testenv.MethodWatch || r.Method == http.MethodGet)
	})
	b.Eventually(watchesOfChildren(operator)).Should(gomega.ConsistOf(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Listed": gomega.BeTrue(), "Err": gomega.MatchError(gomega.ContainSubstring("out of order")),
	})), b.story)
	b.Eventually(refused.Load).Should(gomega.BeNumerically(">=", 4), "it is retried")
	b.Expect(b.logs.With("The children cannot be watched now; this is retried.", "configmaps.v1")).To(gomega.HaveLen(1), b.story)
	b.patch(b.of(configMaps, "theme"), `{"data":{"theme":"light"}}`)

	faults.Heal()
	b.expectChild(b.of(configMaps, "theme"), testenv.HavePath("data.theme", "dark"))
	b.Eventually(watchesOfChildren(operator)).Should(gomega.ConsistOf(gomega.HaveField("Err", gomega.BeNil())), b.story)
	b.Expect(b.logs.With("The children are watched again.")).To(gomega.HaveLen(1), b.story)
}

// define installs a definition for the children of one test, and returns a client for it.
func (b *bench) define(group string, versions ...string) client.Client {
	b.t.Helper()
	s := runtime.NewScheme() // other tests use the global one at the same time
	b.Expect(errors.Join(scheme.AddToScheme(s), apiextensionsv1.AddToScheme(s))).To(gomega.Succeed())
	admin, err := client.New(cluster.Config(), client.Options{Scheme: s})
	b.Expect(err).NotTo(gomega.HaveOccurred())
	b.Expect(admin.Create(b.t.Context(), testenv.Definition(group, "parts", "Part", versions...))).To(gomega.Succeed())
	b.t.Cleanup(func() {
		_ = admin.Delete(context.Background(), testenv.Definition(group, "parts", "Part", versions...))
	})
	return admin
}

// partKind returns the kind of the children of one test.
func partKind(group, version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: "Part"}
}

func TestChildrenAreWatchedInAnotherVersionIfTheirVersionIsNotServedAnymore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const group = "turning.example.com"
	admin := b.define(group, "v1", "v2")
	b.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{object(partKind(group, "v1"), c.Namespace(), "part", map[string]any{"spec": map[string]any{"color": "red"}})}, nil
	}, kopf.ID("children"))
	b.Eventually(b.servesParts(group, "v2")).Should(gomega.Succeed())
	operator := b.start(withBriefWatches, withoutScanning)
	b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	part := object(partKind(group, "v1"), b.namespace, "part", nil)
	b.expectChild(part, beOurs())
	b.Expect(watchesOfChildren(operator)()).To(gomega.ConsistOf(gomega.HaveField("Resource", "parts.v2."+group)), "the better version")

	definition := &apiextensionsv1.CustomResourceDefinition{}
	b.Expect(admin.Get(t.Context(), client.ObjectKey{Name: "parts." + group}, definition)).To(gomega.Succeed())
	definition.Spec.Versions[1].Served = false
	b.Expect(admin.Update(t.Context(), definition)).To(gomega.Succeed())
	b.Eventually(b.logged("The children are watched in another version.")).Should(gomega.HaveLen(1), b.story)
	b.Expect(watchesOfChildren(operator)()).To(gomega.ConsistOf(gomega.HaveField("Resource", "parts.v1."+group)))
	b.patch(part, `{"spec":{"color":"blue"}}`)
	b.expectChild(part, testenv.HavePath("spec.color", "red"))
}

// servesParts returns a function that reports whether the server serves a version.
func (b *bench) servesParts(group, version string) func() error {
	return func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(partKind(group, version))
		return cluster.Client().List(b.t.Context(), list, client.InNamespace(b.namespace))
	}
}

func withoutScanning(o *kopf.Options) { o.Settings.Scanning.Disabled = true }

func TestChildrenOfADefinitionThatIsRemovedAreGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const group = "passing.example.com"
	admin := b.define(group, "v1")
	b.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{object(partKind(group, "v1"), c.Namespace(), "part", map[string]any{"spec": map[string]any{"color": "red"}})}, nil
	}, kopf.ID("children"), kopf.Backoff(time.Second))
	b.Eventually(b.servesParts(group, "v1")).Should(gomega.Succeed())
	operator := b.start(withBriefWatches, withoutScanning)
	b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	part := object(partKind(group, "v1"), b.namespace, "part", nil)
	before := b.expectChild(part, beOurs())

	b.Expect(admin.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "parts." + group}})).To(gomega.Succeed())
	b.Eventually(b.logged("The cluster does not serve the kind of children anymore: they are gone.")).Should(gomega.HaveLen(1), b.story)
	b.Eventually(watchesOfChildren(operator)).Should(gomega.BeEmpty(), b.story)
	b.Eventually(b.logged("does not serve the kind Part."+group+" in the version v1")).ShouldNot(gomega.BeEmpty(), b.story)

	b.define(group, "v1")
	after := b.expectChild(part, beOurs())
	b.Expect(after.GetUID()).NotTo(gomega.Equal(before.GetUID()))
	b.patch(part, `{"spec":{"color":"blue"}}`)
	b.expectChild(part, testenv.HavePath("spec.color", "red"))
}

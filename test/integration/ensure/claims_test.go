package ensure

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// shared returns one child for all parents, in a namespace that no garbage collector reaches from
// them: only its label says whose child it is.
func shared(elsewhere string) func(context.Context, *kopf.Change) ([]client.Object, error) {
	return func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{object(configMaps, elsewhere, "shared", map[string]any{"data": map[string]any{"of": c.Name()}})}, nil
	}
}

func TestParentsThatWantTheSameChildAtTheSameTime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	elsewhere := cluster.Namespace(t)
	b.Ensure(shops, shared(elsewhere), kopf.ID("children"), kopf.AdoptExisting(), kopf.Backoff(time.Second))
	for _, name := range []string{"one", "two"} {
		b.shop(name, map[string]any{"x": int64(1)})
	}
	b.start()
	child := object(configMaps, elsewhere, "shared", nil)
	winner, _ := b.expectChild(child, beOurs()).Object["data"].(map[string]any)["of"].(string)
	loser := map[string]string{"one": "two", "two": "one"}[winner]
	b.Eventually(b.logged(`"name"="`+loser+`"`, "/shared", "belongs to KopfExample.kopf.dev "+b.namespace+"/"+winner, "an object has one parent")).ShouldNot(gomega.BeEmpty(), b.story)
	b.Consistently(cluster.Current(child), "300ms").Should(testenv.HavePath("data.of", winner))

	b.remove(b.of(shopKind, winner))
	b.expectChild(child, testenv.HavePath("data.of", loser))
	b.expectHandled(b.of(shopKind, loser))
}

// A child without an owner reference survives a parent whose finalizer was removed.
func TestRecreatedParentInheritsNoFarChildren(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	elsewhere := cluster.Namespace(t)
	b.Ensure(shops, shared(elsewhere), kopf.ID("children"))
	operator := b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	operator.Stop()
	b.patch(shop, `{"metadata":{"finalizers":null}}`)
	b.remove(shop)
	child := b.current(object(configMaps, elsewhere, "shared", nil))
	b.shop("one", map[string]any{"x": int64(1)})
	b.start()
	b.Eventually(b.logged("/shared", "belongs to a former parent of this name")).ShouldNot(gomega.BeEmpty(), b.story)
	b.Expect(b.current(child).GetResourceVersion()).To(gomega.Equal(child.GetResourceVersion()))
}

// The garbage collector follows references to parents outside of namespaces, so these need no
// finalizer.
func TestParentOutsideOfNamespaces(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(kopf.Resource("kopf.dev", "v1", "kopfclusters"), func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		children := []client.Object{object(configMaps, b.namespace, "near", map[string]any{"data": map[string]any{"a": "b"}})}
		if lost, _ := c.Spec().Bool("lost"); lost {
			children = append(children, object(configMaps, "", "nowhere", nil))
		}
		return children, nil
	}, kopf.ID("children"), kopf.When(func(a kopf.Arguments) bool { return a.Name() == b.namespace }))
	b.start()
	parent := b.submit(testenv.NewObject("KopfCluster", "", b.namespace, map[string]any{"x": int64(1)}))
	child := b.expectChild(b.of(configMaps, "near"), beOurs(), testenv.HavePath("metadata.ownerReferences", gomega.HaveLen(1)))
	b.Expect(b.expectHandled(parent).GetFinalizers()).To(gomega.BeEmpty())
	b.patch(child, `{"data":{"a":"c"}}`)
	b.expectChild(child, testenv.HavePath("data.a", "b"))

	b.patch(parent, `{"spec":{"lost":true}}`)
	b.Eventually(b.logged("ConfigMap nowhere has no namespace, and its parent is cluster-scoped: set one")).ShouldNot(gomega.BeEmpty(), b.story)
	b.remove(parent)
	b.expectGone(parent)
}

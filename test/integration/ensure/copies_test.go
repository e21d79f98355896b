package ensure

import (
	"context"
	"errors"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// copyOf returns what `kubectl get -o yaml` saves of an object, under another name.
func copyOf(obj *unstructured.Unstructured, name string) *unstructured.Unstructured {
	saved := obj.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unset(saved, "metadata", field)
	}
	unset(saved, "status")
	saved.SetName(name)
	return saved
}

// The records of a copy are about another object, which has the children.
func TestCopyGetsChildrenOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, b.counted(func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{object(configMaps, "", c.Name(), nil)}, nil
	}), kopf.ID("children"))
	created := make(chan string, 10)
	b.OnCreate(shops, func(_ context.Context, c *kopf.Change) error {
		created <- c.Name()
		return nil
	}, kopf.ID("creation"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	b.expectChild(b.of(configMaps, "one"), beOurs())
	b.requests.Reset()
	b.calls.Store(0)

	double := b.submit(copyOf(shop, "two"))
	b.expectChild(b.of(configMaps, "two"), beOurs())
	b.expectRest()
	b.Expect(b.calls.Load()).To(gomega.BeEquivalentTo(1))
	b.expectWrites(0, 1)
	b.Expect(b.current(double).GetResourceVersion()).To(gomega.Equal(double.GetResourceVersion()))

	// Restored from a backup, under its own name.
	b.remove(shop)
	b.Eventually(cluster.Exists(shop)).Should(gomega.BeFalse())
	b.remove(b.of(configMaps, "one")) // as the garbage collector does
	b.expectRest()
	restored := b.submit(copyOf(shop, "one"))
	b.expectChild(b.of(configMaps, "one"), beOurs(),
		testenv.HavePath("metadata.ownerReferences", gomega.ContainElement(gomega.HaveKeyWithValue("uid", string(restored.GetUID())))))

	b.Expect(created).To(gomega.HaveLen(1), "handlers of creation are called as by Kopf")
}

// A copy of an object in the middle of its creation has the record that its children exist.
func TestCopyOfAnUnfinishedCreationGetsChildren(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{object(configMaps, "", c.Name(), nil)}, nil
	}, kopf.ID("children"))
	b.OnCreate(shops, func(context.Context, *kopf.Change) error { return errors.New("not yet") }, kopf.ID("creation"))
	b.start()
	shop := b.shop("one", map[string]any{"x": int64(1)})
	b.Eventually(cluster.Current(shop)).Should(testenv.HavePath("metadata.annotations", gomega.HaveKey(prefix+"children")), b.story)
	b.submit(copyOf(b.current(shop), "two"))
	b.expectChild(b.of(configMaps, "two"), beOurs())
}

// A copy without the finalizer must get it: it has children that the garbage collector does not reach.
func TestCopyWithoutFinalizerReleasesItsFarChildren(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	far := cluster.Namespace(t)
	b.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{object(configMaps, far, c.Name(), nil)}, nil
	}, kopf.ID("children"))
	b.start(func(o *kopf.Options) { o.Settings.Scope.Namespaces = []string{b.namespace, far} })
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	saved := copyOf(shop, "two")
	saved.SetFinalizers(nil)
	double := b.submit(saved)
	child := object(configMaps, far, "two", nil)
	b.expectChild(child, beOurs())
	b.remove(double)
	b.expectGone(child)
}

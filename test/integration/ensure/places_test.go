package ensure

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/testenv"
)

// far returns a child in another namespace, and one without a namespace.
func far(elsewhere string) func(context.Context, *kopf.Change) ([]client.Object, error) {
	return func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		stage := object(namespaces, "", c.Namespace()+"-stage", nil)
		theme := object(configMaps, elsewhere, c.Name(), map[string]any{"data": map[string]any{"a": "b"}})
		near := object(configMaps, "", c.Name(), map[string]any{"data": map[string]any{"a": "b"}})
		if less, _ := c.Spec().Bool("less"); less {
			return []client.Object{near}, nil
		}
		return []client.Object{near, theme, stage}, nil
	}
}

func TestChildrenThatTheGarbageCollectorDoesNotReach(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	elsewhere := cluster.Namespace(t)
	b.Ensure(shops, far(elsewhere), kopf.ID("children"), kopf.Prune("Namespace"))
	b.start()
	b.requests.Reset()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	theme, stage := object(configMaps, elsewhere, "one", nil), object(namespaces, "", b.namespace+"-stage", nil)
	b.expectChild(theme, beOurs(), testenv.HavePath("metadata.ownerReferences", nil))
	b.expectChild(stage, beOurs(), testenv.HavePath("metadata.ownerReferences", nil))
	b.expectChild(b.of(configMaps, "one"), beOurs(), testenv.HavePath("metadata.ownerReferences", gomega.HaveLen(1)))
	b.Expect(shop.GetFinalizers()).To(gomega.ConsistOf(settings.DefaultFinalizer))
	b.Expect(shop.GetAnnotations()).To(gomega.HaveKeyWithValue(places, `["ConfigMap","ConfigMap/`+elsewhere+`","Namespace/*"]`))
	b.expectWrites(2, 3) // the finalizer comes with the places

	b.remove(shop)
	b.expectGone(shop)
	b.expectGone(theme)
	b.Eventually(cluster.Current(stage)).Should(testenv.HavePath("metadata.deletionTimestamp", gomega.Not(gomega.BeNil())))
	b.Expect(cluster.Exists(b.of(configMaps, "one"))()).To(gomega.BeTrue(), "the garbage collector deletes it, which does not run here")
}

func TestNamespaceIsNotDeletedWithoutRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	elsewhere := cluster.Namespace(t)
	b.Ensure(shops, far(elsewhere), kopf.ID("children"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	theme, stage := object(configMaps, elsewhere, "one", nil), object(namespaces, "", b.namespace+"-stage", nil)
	b.patch(shop, `{"spec":{"less":true}}`)
	b.expectGone(theme)
	b.remove(shop)
	b.expectGone(shop)
	b.Expect(b.current(stage).GetDeletionTimestamp()).To(gomega.BeNil())
}

func TestChildrenInOtherPlacesAreDeletedAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	elsewhere := cluster.Namespace(t)
	b.Ensure(shops, far(elsewhere), kopf.ID("children"))
	operator := b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	operator.Stop()
	b.remove(shop)
	b.start()
	b.expectGone(shop)
	b.expectGone(object(configMaps, elsewhere, "one", nil))
}

// A child in another namespace has no owner reference: without its label, only its annotation says
// whose child it is.
func TestLabelsOfChildrenInOtherPlacesAreRestored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	elsewhere := cluster.Namespace(t)
	b.Ensure(shops, far(elsewhere), kopf.ID("children"))
	operator := b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	theme := object(configMaps, elsewhere, "one", nil)
	ours := b.expectChild(theme, beOurs()).GetLabels()[label]
	for _, change := range []string{`null`, `"another"`} {
		b.patch(theme, `{"metadata":{"labels":{"`+label+`":`+change+`}},"data":{"a":"c"}}`)
		b.expectChild(theme, testenv.HavePath("metadata.labels", gomega.HaveKeyWithValue(label, ours)), testenv.HavePath("data.a", "b"))
	}
	operator.Stop()
	b.patch(theme, `{"metadata":{"labels":{"`+label+`":null}}}`)
	b.start()
	b.patch(shop, `{"spec":{"x":2}}`)
	b.expectChild(theme, testenv.HavePath("metadata.labels", gomega.HaveKeyWithValue(label, ours)))
	b.remove(shop)
	b.expectGone(theme)
}

func TestKindsThatTheHandlerNoLongerReturnsAreFoundAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, children, kopf.ID("children"))
	operator := b.start()
	b.expectHandled(b.shop("one", map[string]any{"replicas": int64(1)}))
	b.restart(operator, func(r *kopf.Registry) {
		r.Ensure(shops, func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
			all, err := children(ctx, c)
			return all[2:3], err
		}, kopf.ID("children"))
	})
	b.expectGone(b.of(deployments, "one"))
	b.expectGone(b.of(services, "one"))
	b.expectGone(b.of(secrets, "one"))
	b.Expect(b.current(b.of(claims, "one")).GetDeletionTimestamp()).To(gomega.BeNil())
	b.expectChild(b.of(configMaps, "one"), beOurs())
}

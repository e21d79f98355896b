package ensure

import (
	"context"
	"net/http"
	"testing"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// writes counts the requests that change something, except events.
func (b *bench) writes() (parents, others int) {
	for key, n := range b.requests.Snapshot() {
		switch {
		case key.Method == http.MethodGet || key.Method == "WATCH" || key.Target == "selfsubjectaccessreviews": // the last ones belong to the start
		case key.Target == "kopfexamples":
			parents += n
		default:
			others += n
		}
	}
	return parents, others
}

// expectWrites compares the number of writes since the last call.
func (b *bench) expectWrites(parents, others int) {
	b.t.Helper()
	b.expectRest()
	gotParents, gotOthers := b.writes()
	b.Expect([]int{gotParents, gotOthers}).To(gomega.Equal([]int{parents, others}), b.requests.String)
	b.requests.Reset()
}

func TestLifeOfFiveChildren(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, b.counted(children), kopf.ID("children"))
	b.start()
	b.requests.Reset()
	shop := b.expectHandled(b.shop("one", map[string]any{"replicas": int64(1)}))
	for _, child := range family(b.namespace, "one", 1) {
		b.expectChild(b.of(child.GetObjectKind().GroupVersionKind(), "one"), beOurs(), testenv.HavePath("metadata.ownerReferences", gomega.HaveLen(1)))
	}
	b.Expect(shop.GetAnnotations()).To(gomega.HaveKeyWithValue(places, `["ConfigMap","Deployment.apps","PersistentVolumeClaim","Secret","Service"]`))
	b.Expect(shop.GetFinalizers()).To(gomega.BeEmpty())
	b.expectWrites(2, 5) // the places, and the end of the creation

	b.patch(shop, `{"spec":{"replicas":2}}`)
	b.expectChild(b.of(deployments, "one"), testenv.HavePath("spec.replicas", int64(2)))
	b.expectChild(b.of(configMaps, "one"), testenv.HavePath("data.replicas", "2"))
	b.expectWrites(1, 2)

	b.patch(shop, `{"metadata":{"labels":{"other":"x"}}}`)
	b.Eventually(b.calls.Load).Should(gomega.BeEquivalentTo(3))
	b.expectWrites(1, 0)

	b.remove(shop)
	b.expectGone(shop)
	b.expectWrites(0, 0) // the garbage collector does the rest
}

// chosen returns those children of the family that the spec names.
func chosen(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	var some []client.Object
	kinds, _ := c.Spec().Strings("kinds")
	for _, child := range family(c.Namespace(), c.Name(), 1) {
		for _, kind := range kinds {
			if child.GetObjectKind().GroupVersionKind().Kind == kind {
				some = append(some, child)
			}
		}
	}
	return some, nil
}

func TestChildrenThatAreNoLongerReturnedAreDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, b.counted(chosen), kopf.ID("children"))
	b.start()
	b.requests.Reset()
	shop := b.expectHandled(b.shop("one", map[string]any{"kinds": []any{"ConfigMap", "Service", "PersistentVolumeClaim"}}))
	b.expectWrites(2, 3)
	b.patch(shop, `{"spec":{"kinds":["ConfigMap","Secret"]}}`)
	b.expectGone(b.of(services, "one"))
	b.expectChild(b.of(configMaps, "one"), beOurs())
	b.expectChild(b.of(secrets, "one"), beOurs())
	b.expectWrites(2, 2) // the places, the end; the secret, the service
	claim := b.expectChild(b.of(claims, "one"), beOurs())
	b.Expect(claim.GetDeletionTimestamp()).To(gomega.BeNil(), "a claim is deleted only on request")

	b.patch(shop, `{"spec":{"kinds":["ConfigMap","Secret","PersistentVolumeClaim"]}}`)
	b.Eventually(b.calls.Load).Should(gomega.BeEquivalentTo(3))
	b.expectWrites(1, 1) // the claim is there; one apply shows that it is as before
}

func TestClaimIsDeletedOnRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, chosen, kopf.ID("children"), kopf.Prune("PersistentVolumeClaim"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"kinds": []any{"ConfigMap", "PersistentVolumeClaim"}}))
	b.patch(shop, `{"spec":{"kinds":["ConfigMap"]}}`)
	b.Eventually(func() bool {
		claim, err := cluster.Current(b.of(claims, "one"))()
		return apierrors.IsNotFound(err) || err == nil && claim.GetDeletionTimestamp() != nil // a finalizer of Kubernetes keeps it
	}).Should(gomega.BeTrue(), b.story)
}

func TestChildIsKeptByAnAnnotation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, chosen, kopf.ID("children"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"kinds": []any{"ConfigMap", "Service"}}))
	b.patch(b.of(configMaps, "one"), `{"metadata":{"annotations":{"`+keep+`":""}}}`)
	b.patch(shop, `{"spec":{"kinds":["ConfigMap","Service"],"again":1}}`)
	b.expectChild(b.of(configMaps, "one"), testenv.HavePath("metadata.ownerReferences", nil), beOurs()) // nor does the garbage collector delete it
	b.patch(shop, `{"spec":{"kinds":["Service"]}}`)
	b.expectHandled(shop)
	b.Expect(cluster.Exists(b.of(configMaps, "one"))()).To(gomega.BeTrue())
}

func TestNoChildIsDeletedByAnEmptyReturn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, chosen, kopf.ID("children"))
	operator := b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"kinds": []any{"ConfigMap", "Service"}}))
	b.patch(shop, `{"spec":{"kinds":[]}}`)
	b.Eventually(b.logged("returned no children, but 2 exist", "kopf.AllowEmpty()")).ShouldNot(gomega.BeEmpty(), b.story)
	b.Expect(cluster.Exists(b.of(configMaps, "one"))()).To(gomega.BeTrue())
	b.Expect(cluster.Exists(b.of(services, "one"))()).To(gomega.BeTrue())

	b.restart(operator, func(r *kopf.Registry) { r.Ensure(shops, chosen, kopf.ID("children"), kopf.AllowEmpty()) })
	b.patch(shop, `{"metadata":{"annotations":{"`+prefix+`request-retry":"now children"}}}`)
	b.expectGone(b.of(configMaps, "one"))
	b.expectGone(b.of(services, "one"))
}

func TestNoChildIsChangedByAPanic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
		all, _ := children(ctx, c)
		for i := range all {
			if ok, _ := c.Spec().Bool("panic"); ok && i == 2 {
				panic("after half")
			}
		}
		return all, nil
	}, kopf.ID("children"))
	b.start()
	b.requests.Reset()
	shop := b.expectHandled(b.shop("one", map[string]any{"replicas": int64(1)}))
	b.expectWrites(2, 5)
	b.patch(shop, `{"spec":{"panic":true,"replicas":3}}`)
	b.Eventually(b.logged("panic: after half")).ShouldNot(gomega.BeEmpty())
	b.expectWrites(1, 0) // the record of the failure
}

// theme returns one config map with a name that the spec may give.
func theme(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	name, ok := c.Spec().String("theme")
	if !ok {
		name = "theme"
	}
	return []client.Object{object(configMaps, c.Namespace(), name, map[string]any{"data": map[string]any{"theme": "dark"}})}, nil
}

func TestObjectOfAStrangerIsNotTouched(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stranger := b.submit(object(configMaps, b.namespace, "theme", map[string]any{"data": map[string]any{"theme": "light"}}))
	b.Ensure(shops, theme, kopf.ID("children"))
	operator := b.start()
	shop := b.shop("one", map[string]any{"x": int64(1)})
	b.Eventually(b.logged("ConfigMap", "/theme", "belongs to no owner", "kopf.AdoptExisting()")).ShouldNot(gomega.BeEmpty(), b.story)
	b.Expect(b.current(stranger).GetResourceVersion()).To(gomega.Equal(stranger.GetResourceVersion()))

	b.restart(operator, func(r *kopf.Registry) { r.Ensure(shops, theme, kopf.ID("children"), kopf.AdoptExisting()) })
	b.patch(shop, `{"metadata":{"annotations":{"`+prefix+`request-retry":"now children"}}}`)
	b.expectChild(stranger, beOurs(), testenv.HavePath("data.theme", "dark"))
}

func TestObjectOfAnotherControllerIsNeverTakenOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.submit(object(configMaps, b.namespace, "other", nil))
	stranger := object(configMaps, b.namespace, "theme", map[string]any{"data": map[string]any{"theme": "light"}})
	stranger.SetOwnerReferences(controlledBy(other))
	b.submit(stranger)
	b.Ensure(shops, theme, kopf.ID("children"), kopf.AdoptExisting())
	b.start()
	b.shop("one", map[string]any{"x": int64(1)})
	b.Eventually(b.logged("/theme", "belongs to another controller")).ShouldNot(gomega.BeEmpty(), b.story)
	b.Expect(b.current(stranger).GetResourceVersion()).To(gomega.Equal(stranger.GetResourceVersion()))
}

func TestTwoParentsCannotHaveOneChild(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, theme, kopf.ID("children"), kopf.AdoptExisting())
	b.start()
	b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	child := b.expectChild(b.of(configMaps, "theme"), beOurs())
	b.shop("two", map[string]any{"x": int64(1)})
	b.Eventually(b.logged("/theme", "belongs to another controller")).ShouldNot(gomega.BeEmpty(), b.story)
	b.Expect(b.current(child).GetResourceVersion()).To(gomega.Equal(child.GetResourceVersion()))
}

func TestChildrenOfARenamedHandlerAreLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, theme, kopf.ID("before"))
	operator := b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	child := b.expectChild(b.of(configMaps, "theme"), beOurs())
	operator = b.restart(operator, func(r *kopf.Registry) { r.Ensure(shops, theme, kopf.ID("after")) })
	b.Eventually(b.logged("/theme", `belongs to the handler \"before\", which is not declared anymore`)).ShouldNot(gomega.BeEmpty(), b.story)
	b.Expect(b.current(child).GetResourceVersion()).To(gomega.Equal(child.GetResourceVersion()))

	b.restart(operator, func(r *kopf.Registry) { r.Ensure(shops, theme, kopf.ID("after"), kopf.AdoptExisting()) })
	b.patch(shop, `{"spec":{"x":2}}`)
	b.Eventually(func() string { return b.current(child).GetLabels()[label] }).ShouldNot(gomega.Equal(child.GetLabels()[label]), b.story)
}

func TestChildrenOfHandlersThatAreNotDeclaredAreReported(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, children, kopf.ID("before"))
	operator := b.start()
	b.expectHandled(b.shop("one", map[string]any{"replicas": int64(1)}))
	operator = b.restart(operator, func(r *kopf.Registry) {
		r.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
			return []client.Object{object(configMaps, "", c.Name()+"-other", nil)}, nil
		}, kopf.ID("after"))
	})
	b.Eventually(b.logged("not declared anymore are left alone", "before", "children", "KopfExample.kopf.dev")).Should(gomega.HaveLen(1), b.story)
	b.expectChild(b.of(configMaps, "one"), beOurs())

	b.restart(operator, func(r *kopf.Registry) {
		r.OnUpdate(shops, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("update"))
	})
	b.Eventually(b.logged("Objects have children of a function of kopf.Ensure, but none is declared", "kopfexamples")).Should(gomega.HaveLen(1), b.story)
	b.expectChild(b.of(configMaps, "one"), beOurs())
}

func TestRecreatedParentInheritsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, theme, kopf.ID("children"), kopf.AdoptExisting())
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	child := b.expectChild(b.of(configMaps, "theme"), beOurs())
	b.remove(shop)
	b.expectGone(shop)
	b.shop("one", map[string]any{"x": int64(1)})
	// The garbage collector is not running here, so the former child is still there.
	b.Eventually(b.logged("/theme", "belongs to a former parent of this name")).ShouldNot(gomega.BeEmpty(), b.story)
	b.Expect(b.current(child).GetResourceVersion()).To(gomega.Equal(child.GetResourceVersion()))
}

func TestRefusedChildDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		all := family(c.Namespace(), c.Name(), 1)
		if port, ok := c.Spec().Int64("port"); ok {
			service, _ := all[1].(*unstructured.Unstructured)
			service.Object["spec"] = map[string]any{"ports": []any{map[string]any{"port": port}}}
		}
		if ok, _ := c.Spec().Bool("less"); ok {
			all = all[:2]
		}
		return all, nil
	}, kopf.ID("children"), kopf.Backoff(0))
	b.start()
	shop := b.shop("one", map[string]any{"port": int64(70000)})
	b.Eventually(b.logged("Service", "/one", "spec.ports[0].port")).ShouldNot(gomega.BeEmpty(), b.story)
	b.expectChild(b.of(deployments, "one"), beOurs())
	b.expectChild(b.of(configMaps, "one"), beOurs())
	b.patch(shop, `{"spec":{"less":true}}`)
	b.Consistently(cluster.Exists(b.of(configMaps, "one")), "300ms").Should(gomega.BeTrue(), "nothing is deleted while a child is refused")
	b.patch(shop, `{"spec":{"port":80}}`)
	b.expectChild(b.of(services, "one"), beOurs())
	b.expectGone(b.of(configMaps, "one"))
}

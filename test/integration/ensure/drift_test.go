package ensure

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestWhatOthersChangeIsRestored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, b.counted(children), kopf.ID("children"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"replicas": int64(1)}))
	b.expectRest()
	b.requests.Reset()

	b.patch(b.of(configMaps, "one"), `{"data":{"theme":"light"}}`)
	b.expectChild(b.of(configMaps, "one"), testenv.HavePath("data.theme", "dark"))
	b.expectWrites(0, 1)

	b.patch(b.of(configMaps, "one"), `{"data":{"theme":null}}`)
	b.expectChild(b.of(configMaps, "one"), testenv.HavePath("data.theme", "dark"))
	b.expectWrites(0, 1)

	before := b.current(b.of(services, "one"))
	b.remove(before)
	b.Eventually(cluster.Current(before)).Should(gomega.And(beOurs(), testenv.HavePath("metadata.uid", gomega.Not(gomega.Equal(string(before.GetUID()))))), b.story)
	b.expectWrites(0, 1)

	b.patch(b.of(configMaps, "one"), `{"metadata":{"labels":{"`+label+`":null}}}`)
	b.expectChild(b.of(configMaps, "one"), beOurs())
	b.expectWrites(0, 2) // the object exists, which the first request finds out

	b.patch(b.of(configMaps, "one"), `{"metadata":{"labels":{"`+label+`":"0123456789abcdef"}}}`)
	b.expectChild(b.of(configMaps, "one"), testenv.HavePath("metadata.labels", gomega.HaveKeyWithValue(label, gomega.HaveLen(32))))
	b.expectWrites(0, 1)

	b.patch(b.of(configMaps, "one"), `{"metadata":{"ownerReferences":null}}`)
	b.expectChild(b.of(configMaps, "one"), testenv.HavePath("metadata.ownerReferences", gomega.HaveLen(1)))
	b.expectWrites(0, 1)

	b.patch(b.of(configMaps, "one"), `{"metadata":{"annotations":{"`+marks+`":"x"}}}`)
	b.expectChild(b.of(configMaps, "one"), beOurs(), testenv.HavePath("metadata.annotations", gomega.HaveKeyWithValue(marks, gomega.ContainSubstring("wanted"))))
	b.expectWrites(0, 1)
	b.Expect(b.current(shop).GetResourceVersion()).To(gomega.Equal(shop.GetResourceVersion()), "nothing is written to the parent")
}

// The API server stores the text of a Secret as its data, and forgets that it was text.
func TestTextOfSecretsIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		texts := map[string]any{"user": "shop", "password": "secret"}
		if guest, _ := c.Spec().Bool("guest"); guest {
			delete(texts, "password")
		}
		return []client.Object{object(secrets, c.Namespace(), c.Name(), map[string]any{"stringData": texts, "data": map[string]any{"user": "YW55", "raw": "AAE="}})}, nil
	}, kopf.ID("children"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	secret := b.of(secrets, "one")
	b.expectChild(secret, testenv.HavePath("data", gomega.Equal(map[string]any{"user": "c2hvcA==", "password": "c2VjcmV0", "raw": "AAE="})))
	b.expectRest()

	b.patch(secret, `{"stringData":{"password":"changed","theirs":"x"}}`)
	b.expectChild(secret, testenv.HavePath("data.password", "c2VjcmV0"), testenv.HavePath("data.theirs", "eA=="))

	b.patch(shop, `{"spec":{"guest":true}}`)
	b.expectChild(secret, testenv.HavePath("data", gomega.Equal(map[string]any{"user": "c2hvcA==", "raw": "AAE=", "theirs": "eA=="})))
	b.expectRest()
}

func TestForeignFieldsAreNoDrift(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, b.counted(func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		all := family(c.Namespace(), c.Name(), 1)
		deployment := all[0]
		unset(deployment, "spec", "replicas") // they belong to an autoscaler
		return all, nil
	}), kopf.ID("children"))
	b.start()
	b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	b.expectRest()
	b.requests.Reset()
	b.calls.Store(0)
	b.patch(b.of(deployments, "one"), `{"spec":{"replicas":5}}`)
	b.patch(b.of(deployments, "one"), `{"metadata":{"annotations":{"example.com/scaled":"yes"}}}`)
	b.patch(b.of(configMaps, "one"), `{"data":{"more":"x"}}`)
	b.expectWrites(0, 0)
	b.Expect(b.calls.Load()).To(gomega.BeZero(), "the function is not even called")
	b.expectChild(b.of(deployments, "one"), testenv.HavePath("spec.replicas", int64(5)))
}

func TestForeignOwnerIsNotTheController(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, theme, kopf.ID("children"))
	b.start()
	b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	other := b.submit(object(configMaps, b.namespace, "other", nil))
	child := b.expectChild(b.of(configMaps, "theme"), beOurs())
	references := append(child.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: other.GetUID()})
	child.SetOwnerReferences(references)
	b.Expect(cluster.Client().Update(t.Context(), child, client.FieldOwner("other"))).To(gomega.Succeed())
	b.expectRest()
	b.expectChild(child, beOurs(), testenv.HavePath("metadata.ownerReferences", gomega.HaveLen(2)))
}

// A child that gets another controller is left to it until that lets it go.
func TestAnotherControllerTakesAChild(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, theme, kopf.ID("children"), kopf.Backoff(time.Second))
	b.start()
	b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	other := b.submit(object(configMaps, b.namespace, "other", nil))
	child := b.expectChild(b.of(configMaps, "theme"), beOurs())
	ours := child.GetOwnerReferences()
	child.SetOwnerReferences(controlledBy(other))
	b.Expect(cluster.Client().Update(t.Context(), child, client.FieldOwner("other"))).To(gomega.Succeed())
	b.patch(child, `{"data":{"theme":"light"}}`)
	b.Eventually(b.logged("the child ConfigMap", "belongs to another controller, ConfigMap other (uid "+string(other.GetUID())+"); it was not changed for KopfExample.kopf.dev", "delete it: kubectl delete configmaps theme -n "+b.namespace)).ShouldNot(gomega.BeEmpty(), b.story)
	b.expectChild(child, testenv.HavePath("data.theme", "light"))
	b.Expect(b.current(child).GetOwnerReferences()).To(gomega.HaveExactElements(gomega.HaveField("UID", other.GetUID())))

	b.patch(child, `{"metadata":{"ownerReferences":null}}`)
	b.expectChild(child, testenv.HavePath("data.theme", "dark"))
	b.Expect(b.current(child).GetOwnerReferences()).To(gomega.Equal(ours))
}

// Nothing that happens to a child while it is applied is missed, and the operator's own writes
// are not taken for those of another client.
func TestOwnWritesTriggerNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, b.counted(children), kopf.ID("children"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"replicas": int64(1)}))
	b.expectRest()
	b.Expect(b.calls.Load()).To(gomega.BeEquivalentTo(1))
	for range 5 {
		b.patch(shop, `{"spec":{"replicas":2}}`)
		b.patch(shop, `{"spec":{"replicas":3}}`)
	}
	b.expectChild(b.of(deployments, "one"), testenv.HavePath("spec.replicas", int64(3)))
	b.expectRest()
	calls := b.calls.Load()
	b.Consistently(b.calls.Load, "300ms").Should(gomega.Equal(calls))
	b.Expect(calls).To(gomega.BeNumerically("<=", 11))
}

// A restoration that fails is recorded on the parent, and continues after a restart.
func TestFailedRestorationIsRetried(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	broken := make(chan struct{})
	fn := func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
		select {
		case <-broken:
			return nil, kopf.Temporary(context.DeadlineExceeded, 0)
		default:
			return theme(ctx, c)
		}
	}
	b.Ensure(shops, fn, kopf.ID("children"))
	operator := b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	b.expectRest()
	close(broken)
	b.patch(b.of(configMaps, "theme"), `{"data":{"theme":"light"}}`)
	b.Eventually(cluster.Current(shop)).Should(testenv.HavePath("metadata.annotations", gomega.HaveKey(prefix+"children.restore")), b.story)
	b.restart(operator, func(r *kopf.Registry) { r.Ensure(shops, theme, kopf.ID("children")) })
	b.expectChild(b.of(configMaps, "theme"), testenv.HavePath("data.theme", "dark"))
	b.Eventually(cluster.Current(shop)).Should(testenv.HavePath("metadata.annotations", gomega.Not(gomega.HaveKey(prefix+"children.restore"))), b.story)
	b.Expect(b.logs.With("The handler will be retried.", `"handler"="children"`)).NotTo(gomega.BeEmpty(), b.story)
	b.Expect(b.logs.With("children/restore")).To(gomega.BeEmpty(), "users have not declared such a handler")
}

func TestFightOverAFieldIsSlowedDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, theme, kopf.ID("children"))
	b.start()
	b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	child := b.expectChild(b.of(configMaps, "theme"), beOurs())
	b.requests.Reset()
	stop := time.Now().Add(3 * time.Second)
	for time.Now().Before(stop) {
		if b.current(child).Object["data"].(map[string]any)["theme"] == "dark" { //nolint:forcetypeassert // it is
			b.patch(child, `{"data":{"theme":"light"}}`)
		}
	}
	b.Eventually(b.logged("Another client keeps changing a child", "data.theme (by kubectl)")).Should(gomega.HaveLen(1), b.story)
	_, writes := b.writes()
	b.Expect(writes).To(gomega.BeNumerically("<=", 9), b.story) // five at once, and then after 1 s, 2 s, …
}

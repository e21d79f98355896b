package ensure

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// unset removes a field of an unstructured object.
func unset(obj client.Object, path ...string) {
	u, _ := obj.(*unstructured.Unstructured)
	unstructured.RemoveNestedField(u.Object, path...)
}

var jobs = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}

// job returns a job with an image, which cannot be changed.
func job(c *kopf.Change) client.Object {
	image, _ := c.Spec().String("image")
	return object(jobs, c.Namespace(), "job", map[string]any{"spec": map[string]any{
		"template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "containers": []any{map[string]any{"name": "x", "image": image}},
		}},
	}})
}

// complete makes a child look like one that is ready or has failed.
func (b *bench) setStatus(child *unstructured.Unstructured, merge string) {
	b.t.Helper()
	b.Expect(cluster.Client().Status().Patch(b.t.Context(), child.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(merge)))).To(gomega.Succeed())
}

// staged returns a deployment, and a config map in the next wave.
func staged(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	all := family(c.Namespace(), c.Name(), 1)
	return append(kopf.InWave(1, all[2]), all[0]), nil
}

func TestWaveWaitsUntilTheEarlierOneIsReady(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, staged, kopf.ID("children"), kopf.WaitReady())
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	b.expectChild(b.of(deployments, "one"), beOurs())
	b.Expect(cluster.Exists(b.of(configMaps, "one"))()).To(gomega.BeFalse(), "the deployment is not ready")
	b.requests.Reset()
	b.setStatus(b.of(deployments, "one"), `{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,
		"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`)
	theme := b.expectChild(b.of(configMaps, "one"), beOurs())
	b.Expect(theme.GetAnnotations()).To(gomega.HaveLen(1), "the wave is not stored")
	b.expectWrites(0, 1)
	b.Expect(b.current(shop).GetResourceVersion()).To(gomega.Equal(shop.GetResourceVersion()))
}

func TestFailedChildFailsTheHandler(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, staged, kopf.ID("children"), kopf.WaitReady())
	b.start()
	b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	b.setStatus(b.of(deployments, "one"), `{"status":{"observedGeneration":1,"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}]}}`)
	b.Eventually(b.logged("Deployment.apps", "/one", "it has failed")).ShouldNot(gomega.BeEmpty(), b.story)
	b.Expect(cluster.Exists(b.of(configMaps, "one"))()).To(gomega.BeFalse())
}

func TestChangeOfAnImmutableFieldIsAnError(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{job(c)}, nil
	}, kopf.ID("children"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"image": "a"}))
	before := b.current(b.of(jobs, "job"))
	b.patch(shop, `{"spec":{"image":"b"}}`)
	b.Eventually(b.logged("Job.batch", "/job", "field is immutable")).ShouldNot(gomega.BeEmpty(), b.story)
	b.Expect(b.current(before).GetUID()).To(gomega.Equal(before.GetUID()))
}

func TestChildIsRecreatedOnRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{job(c)}, nil
	}, kopf.ID("children"), kopf.Recreate("Job.batch"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"image": "a"}))
	before := b.current(b.of(jobs, "job"))
	b.patch(shop, `{"spec":{"image":"b"}}`)
	b.Eventually(cluster.Current(before)).Should(gomega.And(beOurs(), testenv.HavePath("metadata.uid", gomega.Not(gomega.Equal(string(before.GetUID()))))), b.story)

	after := b.current(before)
	b.patch(shop, `{"spec":{"image":""}}`) // no replacement is accepted
	b.Eventually(b.logged("its replacement is refused", "image")).ShouldNot(gomega.BeEmpty(), b.story)
	b.Expect(b.current(after).GetUID()).To(gomega.Equal(after.GetUID()))
	b.Expect(b.current(after).GetDeletionTimestamp()).To(gomega.BeNil())
}

// Whether a change is impossible is not decided by the words of the refusal. The ports that the child
// has are free for its replacement.
func TestRecreationDoesNotDependOnWordsAndOnThePortsOfTheChild(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bindings := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}
	b.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		role, _ := c.Spec().String("role")
		ip, _ := c.Spec().String("ip")
		return []client.Object{
			object(bindings, "", "binding", map[string]any{
				"roleRef":  map[string]any{"apiGroup": bindings.Group, "kind": "Role", "name": role},
				"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "default", "namespace": c.Namespace()}},
			}),
			object(services, "", "service", map[string]any{"spec": map[string]any{
				"type": "NodePort", "clusterIP": ip, "ports": []any{map[string]any{"port": int64(80), "nodePort": int64(30023)}},
			}}),
		}, nil
	}, kopf.ID("children"), kopf.Recreate("RoleBinding.rbac.authorization.k8s.io", "Service"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"role": "a", "ip": "10.0.0.7"}))
	b.patch(shop, `{"spec":{"role":"b","ip":"10.0.0.8"}}`)
	b.expectChild(object(bindings, b.namespace, "binding", nil), testenv.HavePath("roleRef.name", "b"))
	b.expectChild(object(services, b.namespace, "service", nil), testenv.HavePath("spec.clusterIP", "10.0.0.8"), testenv.HavePath("spec.ports", gomega.ConsistOf(gomega.HaveKeyWithValue("nodePort", int64(30023)))))
}

// A child can take long to go. Its replacement waits, and is no other object of the name.
func TestRecreatedChildWaitsForItsPredecessor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{job(c), object(configMaps, "", "other", nil)}, nil
	}, kopf.ID("children"), kopf.Recreate("Job.batch"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"image": "a"}))
	before := b.current(b.of(jobs, "job"))
	b.patch(before, `{"metadata":{"finalizers":["example.com/slow"]}}`)
	b.patch(shop, `{"spec":{"image":"b"}}`)
	b.Eventually(cluster.Current(before)).Should(testenv.HavePath("metadata.deletionTimestamp", gomega.Not(gomega.BeNil())), b.story)
	b.expectHandled(shop) // it waits for an event, and not in the handler
	b.Expect(b.current(before).GetUID()).To(gomega.Equal(before.GetUID()))
	b.requests.Reset()
	b.patch(before, `{"metadata":{"finalizers":null}}`)
	b.Eventually(cluster.Current(before)).Should(gomega.And(beOurs(), testenv.HavePath("metadata.uid", gomega.Not(gomega.Equal(string(before.GetUID()))))), b.story)
	b.expectWrites(0, 1)
}

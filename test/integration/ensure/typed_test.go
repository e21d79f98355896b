package ensure

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

var accounts = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}

// worker returns typed children. The server completes and normalizes them.
func worker(_ context.Context, serviceAccount *corev1.ServiceAccount, c *kopf.Change) ([]client.Object, error) {
	labels := map[string]string{"app": c.Name()}
	memory := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1024Mi"), corev1.ResourceCPU: resource.MustParse("1000m")}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: c.Name()}}
	d.Spec.Replicas = new(int32(2))
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/worker", Resources: corev1.ResourceRequirements{Requests: memory}}}
	return []client.Object{d, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name()}, Data: map[string]string{"account": serviceAccount.Name}}}, nil
}

// Typed children of a typed parent have no fields but those that the handler has set: the zero
// values of Go are not wanted.
func TestTypedChildrenOfATypedParent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	kopf.For[*corev1.ServiceAccount](b.Registry).Ensure(worker, kopf.ID("children"))
	b.start()
	b.expectHandled(b.submit(object(accounts, b.namespace, "one", nil)))
	d := object(deployments, b.namespace, "one", nil)
	b.expectChild(d, testenv.HavePath("spec.replicas", int64(2)))
	b.expectChild(object(configMaps, b.namespace, "one", nil), testenv.HavePath("data.account", "one"))
	b.expectRest()

	b.patch(d, `{"spec":{"replicas":5,"paused":true}}`)
	b.expectChild(d, testenv.HavePath("spec.replicas", int64(2)), testenv.HavePath("spec.paused", true))
	b.expectRest()
}

// The options of handlers apply to functions of children as to all others: a call that takes too
// long is canceled, and an error can be permanent.
func TestOptionsForFunctionsOfChildren(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, func(context.Context, *kopf.Change) ([]client.Object, error) {
		b.calls.Add(1)
		return nil, errors.New("no price")
	}, kopf.ID("strict"), kopf.Errors(kopf.ErrorsPermanent))
	b.Ensure(shops, func(ctx context.Context, _ *kopf.Change) ([]client.Object, error) {
		return nil, kopf.Temporary(errors.New("not yet"), 50*time.Millisecond)
	}, kopf.ID("slow"), kopf.Timeout(500*time.Millisecond))
	b.start()
	shop := b.shop("one", map[string]any{"x": int64(1)})
	b.Eventually(cluster.Current(shop)).Should(testenv.HaveAnnotation(prefix+"last-handled-configuration", gomega.Not(gomega.BeEmpty())), b.story)
	b.Expect(b.calls.Load()).To(gomega.Equal(int64(1)))
	b.Expect(b.logged("The handler failed permanently", "no price")()).NotTo(gomega.BeEmpty(), b.story)
	b.Expect(b.logged("slow", "timed out")()).NotTo(gomega.BeEmpty(), b.story)
	b.expectRest()
}

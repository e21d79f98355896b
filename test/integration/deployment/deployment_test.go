package deployment

import (
	"slices"
	"testing"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/audit"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestDeployments(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{"config/crd", "config/crd/example"} {
		w.install(t, manifests(t, dir))
	}
	t.Run("for the entire cluster, with metrics, webhooks, and the page", func(t *testing.T) {
		older := sample(t, "default")
		older.SetName("older")
		older.Object["spec"] = map[string]any{"my size": int64(3)}
		w.create(t, older)
		o := deployed(t, w, complete(t), "ClusterKopfPeering", "default")
		o.measures()
		o.connects()
		o.checks()
		o.presents(older)
		o.releases(older)
		o.works(sample(t, "default"))
		o.Expect(o.hooks()).NotTo(gomega.BeEmpty(), "other replicas could serve them")
		for _, webhooks := range []client.Object{&admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{}} {
			webhooks.SetName("manager.kopf.dev") // as docs/deployment.md says
			o.Expect(w.Client().Delete(t.Context(), webhooks)).To(gomega.Succeed())
		}
	})
	t.Run("for one namespace", func(t *testing.T) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "my-team"}}
		elsewhere := sample(t, "default")
		w.create(t, namespace, elsewhere)
		o := deployed(t, w, "config/namespaced", "KopfPeering", namespace.Name)
		o.works(sample(t, namespace.Name))
		o.Expect(w.Current(elsewhere)()).To(testenv.HavePath("status", nil))
	})
}

// deployed returns the operator of a kustomization, with the sample peering object.
func deployed(t *testing.T, w *world, dir, peering, namespace string) *operation {
	t.Helper()
	meeting := one(t, peering, manifests(t, "config/samples"))
	if peering == "KopfPeering" {
		meeting.SetNamespace(namespace)
	}
	w.install(t, []*unstructured.Unstructured{meeting})
	return deploy(t, w, manifests(t, dir), meeting)
}

func sample(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	sample := one(t, "KopfExample", manifests(t, "config/samples"))
	sample.SetNamespace(namespace)
	return sample
}

// one returns the only object of a kind.
func one(t *testing.T, kind string, all []*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(all, func(object *unstructured.Unstructured) bool { return object.GetKind() == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	return all[i]
}

// works tests the life of an object and of the operator. In the end, no request was rejected,
// and no permission is unused.
func (o *operation) works(sample *unstructured.Unstructured) {
	o.t.Helper()
	o.Eventually(o.holder).ShouldNot(gomega.BeEmpty())
	o.handles(sample)
	o.updates()
	o.restores()
	o.outlives()
	o.takesOver()
	o.checks()
	o.ends()

	requests := o.journal.Of(o.t, o.account())
	o.Expect(audit.Refused(requests)).To(gomega.BeEmpty())
	grants := slices.DeleteFunc(audit.Grants(o.t, o.manifests), func(g audit.Grant) bool { return g.User != o.account() })
	o.Expect(grants).NotTo(gomega.BeEmpty())
	o.Expect(audit.Unused(grants, requests, elsewhere)).To(gomega.BeEmpty())
	o.t.Logf("%d requests, none of them refused", len(requests))
}

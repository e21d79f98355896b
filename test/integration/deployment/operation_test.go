package deployment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/testenv"
)

// operation is a deployed operator with its objects.
type operation struct {
	*world
	*gomega.WithT
	t          *testing.T
	manifests  []*unstructured.Unstructured
	deployment *appsv1.Deployment
	pods       []*pod

	peering, object *unstructured.Unstructured
	child           *corev1.ConfigMap
}

// deploy applies the manifests, and starts the pods.
func deploy(t *testing.T, w *world, all []*unstructured.Unstructured, peering *unstructured.Unstructured) *operation {
	t.Helper()
	w.install(t, all)
	return operate(t, w, all, peering)
}

// operate starts the pods of manifests that are in the cluster.
func operate(t *testing.T, w *world, all []*unstructured.Unstructured, peering *unstructured.Unstructured) *operation {
	t.Helper()
	o := &operation{world: w, WithT: gomega.NewWithT(t), t: t, manifests: all, peering: peering}
	o.deployment = of[appsv1.Deployment](t, "Deployment", all)[0]
	w.admits(t, o.deployment)
	kubeconfig := w.kubeconfig(t, w.token(t, o.deployment.Namespace, o.deployment.Spec.Template.Spec.ServiceAccountName))
	for i := range *o.deployment.Spec.Replicas {
		o.pods = append(o.pods, start(t, fmt.Sprintf("%s-%d", o.deployment.Name, i), w.program, kubeconfig, o.deployment))
	}
	for _, p := range o.pods {
		p.ready()
	}
	return o
}

// account returns the name of the operator in the cluster.
func (o *operation) account() string {
	return "system:serviceaccount:" + o.deployment.Namespace + ":" + o.deployment.Spec.Template.Spec.ServiceAccountName
}

// asks waits until the operator has made a request.
func (o *operation) asks(verb, resource string) {
	o.t.Helper()
	o.Eventually(o.journal.Has(o.t, o.account(), verb, resource)).Should(gomega.BeTrue(), "%s %s", verb, resource)
}

// peers returns a function that returns the operators with an entry in the peering.
func (o *operation) peers() ([]string, error) {
	current, err := o.Current(o.peering)()
	if err != nil {
		return nil, err
	}
	entries, _, err := unstructured.NestedMap(current.Object, "status")
	return slices.Sorted(maps.Keys(entries)), err
}

// leader returns the pod that handles the objects: the only one in the peering.
func (o *operation) leader() *pod {
	o.t.Helper()
	var names []string
	o.Eventually(func() (err error) {
		names, err = o.peers()
		return err
	}).Should(gomega.Succeed())
	o.Eventually(o.peers).Should(gomega.HaveLen(1))
	names, _ = o.peers()
	i := slices.IndexFunc(o.pods, func(p *pod) bool { return slices.Contains(names, p.name) })
	if i < 0 {
		o.t.Fatalf("the peers %q are not pods", names)
	}
	return o.pods[i]
}

// holder returns a function that returns the holder of the lease.
func (o *operation) holder() (string, error) {
	lease := &coordinationv1.Lease{}
	err := o.Client().Get(o.t.Context(), client.ObjectKey{Namespace: o.deployment.Namespace, Name: "kopf-manager"}, lease)
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// handles creates the sample, and waits until it is handled.
func (o *operation) handles(sample *unstructured.Unstructured) {
	o.t.Helper()
	o.object = sample
	o.child = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: sample.GetNamespace(), Name: sample.GetName()}}
	o.create(o.t, sample)
	o.Eventually(o.Current(sample)).Should(gomega.And(
		testenv.HavePath("status.publish.configmap", sample.GetName()),
		gomega.Not(testenv.HaveFinalizer(settings.DefaultFinalizer)),
	))
	o.Eventually(o.Events(sample)).Should(gomega.ContainElement(gomega.ContainSubstring("publish")))
	o.Eventually(o.data).Should(gomega.HaveKeyWithValue("color", "blue"))
}

// data returns a function that returns the data of the child.
func (o *operation) data() (map[string]string, error) {
	current := &corev1.ConfigMap{}
	err := o.Client().Get(o.t.Context(), client.ObjectKeyFromObject(o.child), current)
	return current.Data, err
}

// change changes the object as another client.
func (o *operation) change(object *unstructured.Unstructured, patch string) {
	o.t.Helper()
	o.Expect(o.Client().Patch(o.t.Context(), object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))).To(gomega.Succeed())
}

// updates changes the object faster than the operator writes, until a write has met a conflict
// and the object was read. The last state is handled.
func (o *operation) updates() {
	o.t.Helper()
	size := 0
	o.Eventually(func() bool {
		for range 5 {
			size++
			o.change(o.object, fmt.Sprintf(`{"spec": {"size": %d}}`, size))
		}
		return o.journal.Has(o.t, o.account(), "get", "kopfexamples")()
	}).Should(gomega.BeTrue())
	o.Eventually(o.data).Should(gomega.HaveKeyWithValue("size", fmt.Sprint(size)))
	o.asks("patch", "events") // for a repeated event
}

// restores changes and deletes the child, and expects it to be restored. A child without its label
// seems to be deleted, so the operator reads it.
func (o *operation) restores() {
	o.t.Helper()
	child := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	child.SetNamespace(o.child.Namespace)
	child.SetName(o.child.Name)
	o.change(child, `{"data": {"color": "red"}}`)
	o.Eventually(o.data).Should(gomega.HaveKeyWithValue("color", "blue"))
	o.change(child, `{"metadata": {"labels": null}}`)
	o.asks("get", "configmaps")
	o.Expect(o.Client().Delete(o.t.Context(), o.child.DeepCopy())).To(gomega.Succeed())
	o.Eventually(o.data).Should(gomega.HaveKeyWithValue("color", "blue"))
}

// outlives checks that the operator pauses for an operator of a higher priority, and resumes
// when that is dead: when its entry expires, the operator checks for another sign of life. On
// a slow machine, the other operator can be dead before it is noticed, so there are many.
func (o *operation) outlives() {
	o.t.Helper()
	resource := strings.ToLower(o.peering.GetKind()) + "s"
	o.Eventually(func() bool {
		if peers, err := o.peers(); err == nil && !slices.Contains(peers, "stranger") {
			now := time.Now().UTC().Format("2006-01-02T15:04:05.000000+00:00")
			o.change(o.peering, `{"status": {"stranger": {"priority": 100, "lifetime": 3, "lastseen": "`+now+`"}}}`)
		}
		return o.journal.Has(o.t, o.account(), "get", resource)()
	}).Should(gomega.BeTrue())
	o.Eventually(o.peers).ShouldNot(gomega.ContainElement("stranger"))
}

// takesOver stops the leader, and expects another leader.
func (o *operation) takesOver() {
	o.t.Helper()
	before := o.leader()
	before.stop()
	o.Expect(before.output()).To(gomega.ContainSubstring(version))
	o.Eventually(o.peers).Should(gomega.And(gomega.HaveLen(1), gomega.Not(gomega.ContainElement(before.name))))
}

// ends deletes the object, and stops the remaining pods.
func (o *operation) ends() {
	o.t.Helper()
	o.Expect(o.Client().Delete(o.t.Context(), o.object.DeepCopy())).To(gomega.Succeed())
	o.Eventually(o.Exists(o.object)).Should(gomega.BeFalse())
	child := &corev1.ConfigMap{}
	o.Expect(o.Client().Get(o.t.Context(), client.ObjectKeyFromObject(o.child), child)).To(gomega.Succeed())
	o.Expect(metav1.IsControlledBy(child, o.object)).To(gomega.BeTrue(), "the garbage collector deletes it, which does not run here")
	o.leader().stop()
	o.Expect(o.peers()).To(gomega.BeEmpty())
	o.Expect(o.holder()).To(gomega.BeEmpty(), "the lease is given back")
}

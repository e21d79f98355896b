package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

func testChildren(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	object := e.create(t)
	operator.says("The creation is processed: 2 succeeded; 0 failed.")
	g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(
		testenv.HavePath("status.createJob.job-name", object.GetName()),
		testenv.HavePath("status.createPod.pod-name", object.GetName())))

	labels := gomega.HaveKeyWithValue("somelabel", "somevalue")
	job, err := get[batchv1.Job](t, e.namespace, object.GetName())()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(job).To(ownedBy(object))
	g.Expect(job.Labels).To(labels)
	g.Expect(job.Spec.Template.Labels).To(labels, "the pods of the job are labelled too")
	g.Expect(job.Spec.Template.Spec.Containers[0].Command).To(gomega.Equal([]string{"sleep", "1m"}))

	pod, err := get[corev1.Pod](t, e.namespace, object.GetName())()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(pod).To(ownedBy(object))
	g.Expect(pod.Labels).To(labels)
	g.Expect(pod.Spec.Containers[0].Command).To(gomega.Equal([]string{"sleep", "1m"}))

	group := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "my-group"}}
	g.Expect(cluster.Client().Create(t.Context(), group)).To(gomega.Succeed())
	member := e.sample(t)
	member.SetName("kopf-example-2")
	g.Expect(unstructured.SetNestedField(member.Object, group.Name, "spec", "group")).To(gomega.Succeed())
	created(t, member)
	g.Eventually(cluster.Current(member)).Should(gomega.SatisfyAll(beHandled(), gomega.WithTransform(client.Object.GetOwnerReferences,
		gomega.ConsistOf(metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: group.Name, UID: group.UID, Controller: new(false), BlockOwnerDeletion: new(true),
		}))))
}

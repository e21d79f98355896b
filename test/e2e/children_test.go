package e2e

import (
	"testing"

	"github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/test/testenv"
)

func testChildren(t *testing.T, e *example) {
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
}

package controller_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest/komega"

	webv1 "github.com/kopf-go/kopf/examples/kubebuilder/api/v1"
)

var _ = Describe("A cron job", func() {
	var cronJob *webv1.CronJob

	BeforeEach(func(ctx SpecContext) {
		komega.SetClient(k8sClient)
		cronJob = &webv1.CronJob{ObjectMeta: newMeta(ctx), Spec: webv1.CronJobSpec{
			Schedule: "@every 1s", ConcurrencyPolicy: webv1.ForbidConcurrent, SuccessfulJobsHistoryLimit: ptr.To[int32](0),
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "report", Image: "mine:1.0"}},
			}}}},
		}}
	})

	It("is completed with defaults", func(ctx SpecContext) {
		cronJob.Spec.Schedule = "@yearly"
		Expect(k8sClient.Create(ctx, cronJob)).To(Succeed())
		Expect(cronJob.Spec.Suspend).To(HaveValue(BeFalse()))
		Expect(cronJob.Spec.FailedJobsHistoryLimit).To(HaveValue(BeEquivalentTo(1)))
	})

	It("is rejected with a schedule that is none", func(ctx SpecContext) {
		cronJob.Spec.Schedule = "at noon"
		Expect(k8sClient.Create(ctx, cronJob)).To(MatchError(ContainSubstring("cannot be read")))
	})

	It("runs one job after another, without a conflict", func(ctx SpecContext) {
		Expect(k8sClient.Create(ctx, cronJob)).To(Succeed())
		first := activeJob(cronJob, "")
		Expect(metav1.IsControlledBy(first, cronJob)).To(BeTrue())

		// There is no controller of jobs in these tests.
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		first.Status.StartTime = &first.CreationTimestamp
		first.Status.CompletionTime = &now
		for _, condition := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			first.Status.Conditions = append(first.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		Expect(k8sClient.Status().Update(ctx, first)).To(Succeed())
		Eventually(komega.Get(first)).Should(Satisfy(isGone(first)))
		activeJob(cronJob, first.Name)

		Eventually(komega.Update(cronJob, func() { cronJob.Spec.Suspend = ptr.To(true) })).Should(Succeed())
		Expect(k8sClient.Delete(ctx, cronJob)).To(Succeed())
		Eventually(komega.Get(cronJob)).Should(Satisfy(apierrors.IsNotFound))
		Expect(accountRequests.with(http.StatusConflict)).NotTo(ContainElement(ContainSubstring("/cronjobs/")))
	})
})

// activeJob returns the only active job when the status shows it, and it is not the former one.
func activeJob(cronJob *webv1.CronJob, former string) *batchv1.Job {
	GinkgoHelper()
	Eventually(komega.Object(cronJob)).Should(HaveField("Status.Active", HaveExactElements(HaveField("Name", Not(Equal(former))))))
	active := cronJob.Status.Active[0]
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: active.Namespace, Name: active.Name}}
	Expect(komega.Get(job)()).To(Succeed())
	Expect(job.UID).To(Equal(active.UID))
	return job
}

// isGone returns whether an error says that the job does not exist, or the garbage collector must remove it, which these
// tests do not have.
func isGone(job *batchv1.Job) func(error) bool {
	return func(err error) bool {
		return apierrors.IsNotFound(err) || err == nil && job.DeletionTimestamp != nil
	}
}

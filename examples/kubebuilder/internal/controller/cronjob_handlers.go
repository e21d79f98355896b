package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "github.com/kopf-go/kopf/examples/kubebuilder/api/v1"
	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/kopf"
)

// +kubebuilder:rbac:groups=web.example.com,resources=cronjobs,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=web.example.com,resources=cronjobs/status,verbs=patch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete

// scheduledAt is the annotation of jobs with the time of their run.
const scheduledAt = "web.example.com/scheduled-at"

// AddCronJobs declares the handlers of cron jobs.
//
// It is the CronJob of kubebuilder's tutorial, with a daemon in place of the reconciler. A timer with
// kopf.ScheduleFunc is shorter if something must only be done at certain times. Here, what to do depends on the
// schedule, on the jobs, and on the spec at the same time, and the status shows it, so one loop looks at all of them.
func AddCronJobs(registry *kopf.Registry) {
	cronJobs := kopf.For[*webv1.CronJob](registry)
	cronJobs.Daemon(runJobs, kopf.WakeOn("spec"), kopf.WatchChildrenOf[*batchv1.Job](),
		kopf.ExponentialBackoff(time.Second, time.Minute))
}

// AddCronJobAdmission declares the handlers that are called before a cron job is stored.
func AddCronJobAdmission(registry *kopf.Registry) {
	cronJobs := kopf.For[*webv1.CronJob](registry)
	cronJobs.OnMutate(defaultCronJob, kopf.Operations("CREATE", "UPDATE"))
	cronJobs.OnValidate(checkCronJob, kopf.Operations("CREATE", "UPDATE"))
}

// runJobs lives as long as the cron job. It sleeps until the next run, or until the spec or a job changes. After an
// error, it begins anew: everything that it must know is in the cluster.
func runJobs(ctx context.Context, _ *webv1.CronJob, t *kopf.Task) error {
	for {
		cronJob := &webv1.CronJob{}
		if err := t.Decode(cronJob); err != nil {
			return err
		}
		jobs, err := jobsOf(t)
		if err != nil {
			return err
		}
		next, err := reconcile(ctx, t, cronJob, jobs)
		if err != nil {
			return err
		}
		if t.WaitForChange(next) {
			return nil
		}
	}
}

// forever is the wait for a change.
const forever = time.Duration(math.MaxInt64)

// reconcile does what is due, and returns when to look again, unless something changes.
func reconcile(ctx context.Context, t *kopf.Task, cronJob *webv1.CronJob, jobs jobs) (time.Duration, error) {
	now := time.Now().UTC()
	if last := jobs.lastRun(); last.After(ptr.Deref(cronJob.Status.LastScheduleTime, metav1.Time{}).Time) {
		cronJob.Status.LastScheduleTime = &metav1.Time{Time: last} // the job was created, and the operator has stopped
	}
	if err := errors.Join(
		removeAllBut(ctx, t, jobs.succeeded, cronJob.Spec.SuccessfulJobsHistoryLimit),
		removeAllBut(ctx, t, jobs.failed, cronJob.Spec.FailedJobsHistoryLimit),
	); err != nil {
		return 0, err
	}
	run, next, err := runsOf(cronJob, now)
	if err != nil { // the webhook prevents most of them
		t.Logger().Error(err, "There are no runs until the spec is corrected.")
		return forever, writeStatus(ctx, t, cronJob, jobs.active)
	}
	switch suspended := ptr.Deref(cronJob.Spec.Suspend, false); {
	case suspended:
		next = forever
	case run.IsZero():
	case cronJob.Spec.ConcurrencyPolicy == webv1.ForbidConcurrent && len(jobs.active) > 0:
		kopf.LogOnly(t.Logger()).Info("The run waits for the jobs that are active.", "run", run, "active", len(jobs.active))
	default:
		if cronJob.Spec.ConcurrencyPolicy == webv1.ReplaceConcurrent {
			if err := removeAllBut(ctx, t, jobs.active, ptr.To[int32](0)); err != nil {
				return 0, err
			}
			jobs.active = nil
		}
		job, err := startJob(ctx, t, cronJob, run)
		if err != nil {
			return 0, err
		}
		if job != nil {
			jobs.active = append(jobs.active, job)
		}
		cronJob.Status.LastScheduleTime = &metav1.Time{Time: run}
	}
	return next, writeStatus(ctx, t, cronJob, jobs.active)
}

// writeStatus stores the status. The operator writes it together with its own state, so there is no conflict with that,
// and no request if nothing has changed. The write wakes no daemon.
func writeStatus(ctx context.Context, t *kopf.Task, cronJob *webv1.CronJob, active []*batchv1.Job) error {
	cronJob.Status.Active = nil
	for _, job := range active {
		cronJob.Status.Active = append(cronJob.Status.Active, corev1.ObjectReference{
			APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID,
		})
	}
	kopf.Update(t, func(latest *webv1.CronJob) error {
		latest.Status = cronJob.Status
		return nil
	})
	return t.Write(ctx)
}

// maxMissed is how many runs that were missed are looked at. More of them mean that the clock or the schedule is wrong.
const maxMissed = 100

// runsOf returns the run to begin now, which is the last one that was missed, or zero if there is none, and how long it
// is until the next one.
func runsOf(cronJob *webv1.CronJob, now time.Time) (run time.Time, next time.Duration, err error) {
	schedule, err := cron.ParseStandard(cronJob.Spec.Schedule)
	if err != nil {
		return run, next, fmt.Errorf("the schedule %q cannot be read: %w", cronJob.Spec.Schedule, err)
	}
	earliest := cronJob.CreationTimestamp.UTC()
	if last := cronJob.Status.LastScheduleTime; last != nil {
		earliest = last.UTC()
	}
	if deadline := cronJob.Spec.StartingDeadlineSeconds; deadline != nil {
		// The run at the very deadline is still in time.
		inTime := now.Add(-time.Duration(*deadline) * time.Second).Add(-time.Nanosecond)
		if inTime.After(earliest) {
			earliest = inTime
		}
	}
	missed := 0
	at := schedule.Next(earliest)
	for ; !at.IsZero() && !at.After(now); at = schedule.Next(at) {
		run = at
		missed++
		if missed > maxMissed {
			return time.Time{}, 0, fmt.Errorf("more than %d runs were missed: set or decrease spec.startingDeadlineSeconds, or check the clock", maxMissed)
		}
	}
	if at.IsZero() { // the schedule has no time within five years
		return run, forever, nil
	}
	return run, at.Sub(now), nil
}

// startJob creates the job of a run. Its name is that of the run, so a repetition creates no second one; it returns nil
// then, and the watch shows the first one.
func startJob(ctx context.Context, t *kopf.Task, cronJob *webv1.CronJob, run time.Time) (*batchv1.Job, error) {
	template := cronJob.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cronJob.Namespace, Name: fmt.Sprintf("%s-%d", cronJob.Name, run.Unix()),
			Labels: template.Labels, Annotations: maps.Clone(template.Annotations),
		},
		Spec: template.Spec,
	}
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, scheduledAt, run.Format(time.RFC3339))
	if err := hierarchy.Adopt(ctx, job); err != nil {
		return nil, err
	}
	if err := t.Client().Create(ctx, job); err != nil {
		return nil, client.IgnoreAlreadyExists(err)
	}
	t.Logger().Info("The job is created.", "job", job.Name)
	return job, nil
}

// jobs are the jobs of a cron job, from the oldest to the newest.
type jobs struct{ active, succeeded, failed []*batchv1.Job }

// jobsOf returns the jobs as the watch has shown them. A job that has just been created can be missing; its creation
// wakes the daemon.
func jobsOf(t *kopf.Task) (all jobs, err error) {
	for _, child := range t.Children() {
		job := &batchv1.Job{}
		if err := child.Decode(job); err != nil {
			return jobs{}, err
		}
		switch {
		case isTrue(job, batchv1.JobComplete):
			all.succeeded = append(all.succeeded, job)
		case isTrue(job, batchv1.JobFailed):
			all.failed = append(all.failed, job)
		case job.DeletionTimestamp == nil:
			all.active = append(all.active, job)
		}
	}
	byAge := func(a, b *batchv1.Job) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(all.active, byAge)
	slices.SortFunc(all.succeeded, byAge)
	slices.SortFunc(all.failed, byAge)
	return all, nil
}

func isTrue(job *batchv1.Job, of batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == of && c.Status == corev1.ConditionTrue
	})
}

// lastRun returns the latest run for which there is a job, or zero.
func (j jobs) lastRun() (last time.Time) {
	for _, job := range slices.Concat(j.active, j.succeeded, j.failed) {
		run, err := time.Parse(time.RFC3339, job.Annotations[scheduledAt])
		if err == nil && run.After(last) {
			last = run
		}
	}
	return last
}

// removeAllBut deletes the oldest jobs until the limit is kept. Without a limit, all stay.
func removeAllBut(ctx context.Context, t *kopf.Task, jobs []*batchv1.Job, limit *int32) error {
	if limit == nil {
		return nil
	}
	for len(jobs) > int(*limit) {
		err := t.Client().Delete(ctx, jobs[0], client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		jobs = jobs[1:]
	}
	return nil
}

// defaultCronJob fills in what the user has left out.
func defaultCronJob(_ context.Context, cronJob *webv1.CronJob, a *kopf.Admission) error {
	if cronJob.Spec.ConcurrencyPolicy == "" {
		a.Patch().Set(string(webv1.AllowConcurrent), "spec", "concurrencyPolicy")
	}
	if cronJob.Spec.Suspend == nil {
		a.Patch().Set(false, "spec", "suspend")
	}
	if cronJob.Spec.SuccessfulJobsHistoryLimit == nil {
		a.Patch().Set(3, "spec", "successfulJobsHistoryLimit")
	}
	if cronJob.Spec.FailedJobsHistoryLimit == nil {
		a.Patch().Set(1, "spec", "failedJobsHistoryLimit")
	}
	return nil
}

// maxNameLength leaves room for what startJob appends to the name: names of jobs have 63 characters at most.
const maxNameLength = 63 - len("-1234567890")

// checkCronJob rejects what the schema cannot describe.
func checkCronJob(_ context.Context, cronJob *webv1.CronJob, a *kopf.Admission) error {
	if len(a.Name()) > maxNameLength {
		return kopf.Reject(fmt.Sprintf("The name has %d characters, and can have %d, because the names of the jobs are longer.", len(a.Name()), maxNameLength), 422)
	}
	if _, err := cron.ParseStandard(cronJob.Spec.Schedule); err != nil {
		return kopf.Reject(fmt.Sprintf("The schedule %q cannot be read: %v", cronJob.Spec.Schedule, err), 422)
	}
	return nil
}

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "github.com/kopf-go/kopf/examples/kubebuilder/api/v1"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// newCronJob returns a cron job with a run every five minutes.
func newCronJob(policy webv1.ConcurrencyPolicy) *webv1.CronJob {
	return &webv1.CronJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: webv1.GroupVersion.String(), Kind: "CronJob"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "report"},
		Spec: webv1.CronJobSpec{
			Schedule: "*/5 * * * *", ConcurrencyPolicy: policy,
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "report", Image: "mine:1.0"}},
			}}}},
		},
	}
}

// cluster is an operator with a cron job, in virtual time that begins at midnight.
type cluster struct {
	*kopftest.Harness
	t       *testing.T
	cronJob *webv1.CronJob
}

func newCluster(t *testing.T, policy webv1.ConcurrencyPolicy, options ...kopftest.Option) *cluster {
	t.Helper()
	c := &cluster{Harness: newHarness(t, options...), t: t, cronJob: newCronJob(policy)}
	c.Create(c.cronJob)
	c.Settle()
	return c
}

// end ends a job, as the job controller does.
func (c *cluster) end(name string, how batchv1.JobConditionType) {
	c.t.Helper()
	job := &batchv1.Job{}
	key := client.ObjectKey{Namespace: "default", Name: name}
	if err := c.Client().Get(context.Background(), key, job); err != nil {
		c.t.Fatal(err)
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue}}
	if err := c.Client().Status().Update(context.Background(), job); err != nil {
		c.t.Fatal(err)
	}
	c.Settle()
}

// jobs returns the minutes of the jobs that exist, with those that the status calls active in brackets.
func (c *cluster) jobs() string {
	c.t.Helper()
	var list batchv1.JobList
	if err := c.Client().List(context.Background(), &list); err != nil {
		c.t.Fatal(err)
	}
	c.Get(c.cronJob)
	var found []string
	for _, job := range list.Items {
		text := job.Annotations[scheduledAt][len("2006-01-02T15:"):len("2006-01-02T15:04")]
		isThis := func(active corev1.ObjectReference) bool { return active.Name == job.Name && active.UID == job.UID }
		if slices.ContainsFunc(c.cronJob.Status.Active, isThis) {
			text = "[" + text + "]"
		}
		if !metav1.IsControlledBy(&job, c.cronJob) {
			c.t.Errorf("%s is not a child of the cron job", job.Name)
		}
		found = append(found, text)
	}
	return strings.Join(found, " ")
}

func (c *cluster) expect(want string) {
	c.t.Helper()
	if got := c.jobs(); got != want {
		c.t.Errorf("%s: got %q, want %q", time.Now().Format("15:04"), got, want)
	}
}

// jobAt returns the name of the job of a minute of the first hour.
func jobAt(minute int) string {
	return fmt.Sprintf("report-%d", time.Date(2000, 1, 1, 0, minute, 0, 0, time.UTC).Unix())
}

func TestCronJobRunsItsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, webv1.AllowConcurrent)
		c.Advance(4 * time.Minute)
		c.expect("")
		c.Advance(time.Minute)
		c.expect("[05]")
		c.end(jobAt(5), batchv1.JobComplete)
		c.expect("05")
		c.Advance(5 * time.Minute)
		c.expect("05 [10]")
		c.end(jobAt(10), batchv1.JobFailed)
		c.Advance(5 * time.Minute)
		c.end(jobAt(15), batchv1.JobFailed) // one failed job is kept
		c.expect("05 15")
		if last := c.cronJob.Status.LastScheduleTime; !last.Equal(ptr.To(metav1.Date(2000, 1, 1, 0, 15, 0, 0, time.UTC))) {
			t.Errorf("got %s", last)
		}
		for minute := 20; minute <= 35; minute += 5 {
			c.Advance(5 * time.Minute)
			c.end(jobAt(minute), batchv1.JobComplete)
		}
		c.expect("15 25 30 35") // three successful ones

		// A change of the spec takes effect at once.
		c.Patch(c.cronJob, `{"spec": {"successfulJobsHistoryLimit": 0, "schedule": "* * * * *"}}`)
		c.Settle()
		c.expect("15")
		c.Advance(2 * time.Minute)
		c.expect("15 [36] [37]")
		c.Patch(c.cronJob, `{"spec": {"suspend": true}}`)
		c.Advance(10 * time.Minute)
		c.expect("15 [36] [37]")
		c.Patch(c.cronJob, `{"spec": {"suspend": false}}`) // the last run is made up for
		c.Settle()
		c.expect("15 [36] [37] [47]")

		c.Delete(c.cronJob)
		c.CollectGarbage()
		if c.Exists(c.cronJob) {
			t.Error("the cron job is left")
		}
	})
}

func TestConcurrencyPolicies(t *testing.T) {
	tests := map[webv1.ConcurrencyPolicy]struct {
		active string
		ends   int
		ended  string
	}{
		"":                      {"[05] [10]", 5, "05 [10]"},
		webv1.AllowConcurrent:   {"[05] [10]", 5, "05 [10]"},
		webv1.ForbidConcurrent:  {"[05]", 5, "05 [10]"}, // the other run is late, but made
		webv1.ReplaceConcurrent: {"[10]", 10, "10"},
	}
	for policy, test := range tests {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, policy)
				c.Advance(11 * time.Minute)
				c.expect(test.active)
				c.end(jobAt(test.ends), batchv1.JobComplete)
				c.expect(test.ended)
			})
		})
	}
}

// Runs are missed while the operator does not run. The last one is made up for, unless it is too late.
func TestMissedRuns(t *testing.T) {
	tests := map[string]struct {
		deadline *int64
		want     string
	}{
		"without a deadline":      {nil, "[05] [55]"},
		"before the deadline":     {ptr.To[int64](240), "[05] [55]"},
		"at the very deadline":    {ptr.To[int64](180), "[05] [55]"},
		"after the deadline":      {ptr.To[int64](179), "[05]"},
		"with no time to be late": {ptr.To[int64](0), "[05]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, webv1.AllowConcurrent)
				c.Advance(6 * time.Minute)
				c.Stop()
				if test.deadline != nil {
					c.Patch(c.cronJob, fmt.Sprintf(`{"spec": {"startingDeadlineSeconds": %d}}`, *test.deadline))
				}
				time.Sleep(52 * time.Minute)
				c.Start()
				c.expect(test.want)
				c.Advance(2 * time.Minute)
				c.expect(test.want + " [00]")
			})
		})
	}
}

// A clock that was wrong, or a schedule that cannot be read, costs no loop of attempts. The correction takes effect.
func TestImpossibleRunsWaitForACorrection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, webv1.AllowConcurrent)
		c.Stop()
		time.Sleep(24 * time.Hour)
		c.Start()
		c.Advance(24 * time.Hour)
		c.expect("")
		errors := 0
		for _, line := range c.Logs() {
			if strings.Contains(fmt.Sprint(line), "until the spec is corrected") {
				errors++
			}
		}
		if errors != 1 {
			t.Errorf("got %d errors", errors)
		}
		c.Patch(c.cronJob, `{"spec": {"startingDeadlineSeconds": 600}}`)
		c.Settle()
		c.expect("[00]")
	})
}

// A run costs two writes, the job and the status, and none meets a conflict. Nothing is written between the runs.
func TestWritesOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, webv1.AllowConcurrent)
		c.Advance(time.Minute)
		before := len(c.Writes())
		for range 10 {
			c.Advance(5 * time.Minute)
		}
		writes := c.Writes()[before:]
		if len(writes) != 20 {
			t.Errorf("got %d writes: %v", len(writes), writes)
		}
		for _, write := range writes {
			if write.Code >= 300 {
				t.Errorf("got %d for %s %s", write.Code, write.Method, write.Path)
			}
		}
	})
}

// Whatever fails at any write, each run has one job, and the status shows the same in the end. The scenario ends between
// two runs, so that there is time to try again.
func TestCronJobSurvivesFaults(t *testing.T) {
	for _, policy := range []webv1.ConcurrencyPolicy{webv1.ForbidConcurrent, webv1.ReplaceConcurrent} {
		t.Run(string(policy), func(t *testing.T) {
			kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
				c := newCluster(t, policy, fault)
				c.Advance(7 * time.Minute)
				c.end(jobAt(5), batchv1.JobComplete)
				c.Advance(5 * time.Minute)
				c.Patch(c.cronJob, `{"spec": {"successfulJobsHistoryLimit": 0}}`)
				c.Advance(5 * time.Minute)
			}, kopftest.SameClock())
		})
	}
}

func TestCronJobDefaults(t *testing.T) {
	cronJob := newCronJob("")
	outcome := kopftest.CallFor(t, defaultCronJob, cronJob, kopftest.Scheme(newScheme(t)))
	want := map[string]any{"concurrencyPolicy": "Allow", "suspend": false, "successfulJobsHistoryLimit": int64(3), "failedJobsHistoryLimit": int64(1)}
	if outcome.Err != nil || !equality.Semantic.DeepEqual(outcome.Patch["spec"], want) {
		t.Errorf("got %+v", outcome)
	}
	cronJob.Spec = webv1.CronJobSpec{
		Schedule: "@daily", ConcurrencyPolicy: webv1.ReplaceConcurrent, Suspend: ptr.To(true),
		SuccessfulJobsHistoryLimit: ptr.To[int32](0), FailedJobsHistoryLimit: ptr.To[int32](0),
	}
	outcome = kopftest.CallFor(t, defaultCronJob, cronJob, kopftest.Scheme(newScheme(t)))
	if outcome.Err != nil || len(outcome.Patch) > 0 {
		t.Errorf("got %+v", outcome)
	}
}

func TestCronJobIsChecked(t *testing.T) {
	tests := map[string]struct{ name, schedule, want string }{
		"a schedule":                   {"report", "0 3 * * *", ""},
		"a schedule in a time zone":    {"report", "CRON_TZ=Europe/Berlin 0 3 * * *", ""},
		"a schedule that is none":      {"report", "at noon", "cannot be read"},
		"a name of the largest length": {strings.Repeat("a", 52), "@daily", ""},
		"a name that is too long":      {strings.Repeat("a", 53), "@daily", "has 53 characters"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cronJob := newCronJob("")
			cronJob.Name = test.name
			cronJob.Spec.Schedule = test.schedule
			err := kopftest.CallFor(t, checkCronJob, cronJob, kopftest.Scheme(newScheme(t))).Err
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func monitor(_ context.Context, t *kopf.Task) error {
	for !t.Wait(10 * time.Second) { // ends early when the daemon must stop
		size, _ := t.Spec().String("size") // always as it is now
		t.Logger().Info("still there", "size", size)
	}
	return nil
}

// A daemon runs for every claim until the claim is deleted.
func ExampleDaemon() {
	kopf.Daemon(volumeclaims, monitor, kopf.InitialDelay(30*time.Second))
}

// Code that only heeds its context needs a cancellation: here, one second after the operator
// asks the daemon to stop. Three seconds later, the operator abandons the daemon.
func ExampleDaemon_cancellation() {
	follow := func(ctx context.Context, t *kopf.Task) error {
		<-ctx.Done() // a request that takes forever
		t.Logger().Info("the request is cut off", "reason", t.StopReason().String())
		return nil
	}
	kopf.Daemon(volumeclaims, follow, kopf.ID("follow"),
		kopf.CancellationBackoff(time.Second), kopf.CancellationTimeout(3*time.Second))
}

// A daemon that works like a reconciler: it does what is due, hands in the status, and sleeps until something changes
// that it looks at, or for an hour.
func ExampleWakeOn() {
	keep := func(ctx context.Context, t *kopf.Task) error {
		for {
			size, _ := t.Spec().String("size") // always as it is now
			t.Patch().Set(size, "status", "provided")
			if err := t.Write(ctx); err != nil {
				return err // the daemon is called again after its backoff
			}
			if t.WaitForChange(time.Hour) {
				return nil
			}
		}
	}
	kopf.Daemon(volumeclaims, keep, kopf.ID("keep"), kopf.WakeOn("spec.size"), kopf.WakeOn("metadata", "labels", "example.com/class"))
}

// The daemon knows the claims of the object, and looks at them again when one of them changes.
func ExampleWatchChildren() {
	count := func(ctx context.Context, t *kopf.Task) error {
		for !t.WaitForChange(time.Hour) {
			bound := 0
			for _, child := range t.Children() {
				if phase, _ := child.Status().String("phase"); phase == "Bound" {
					bound++
				}
			}
			t.Patch().Set(bound, "status", "bound")
			if err := t.Write(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	kopf.Daemon(volumeclaims, count, kopf.ID("bound"), kopf.WatchChildren(kopf.Resource("v1", "persistentvolumeclaims")))
}

// With Go types. Something else can wake the daemon, too: here, a ticker.
func ExampleWatchChildrenOf() {
	look := func(_ context.Context, t *kopf.Task) error {
		ticker := time.NewTicker(time.Minute)
		defer ticker.Stop()
		for {
			select {
			case <-t.Stopped():
				return nil
			case <-t.Changed():
			case <-ticker.C:
			}
			t.Logger().Info("there are pods", "pods", len(t.Children()))
		}
	}
	kopf.Daemon(volumeclaims, look, kopf.ID("look"), kopf.WatchChildrenOf[*corev1.Pod]())
}

// The error says what the API server has refused, and why.
func ExampleWriteError() {
	shrink := func(ctx context.Context, t *kopf.Task) error {
		t.Patch().Set("1Gi", "spec", "size")
		var refused *kopf.WriteError
		switch err := t.Write(ctx); {
		case errors.As(err, &refused):
			t.Logger().Info("the size stays", "claim", refused.Name.Name, "reason", refused.Err.Error())
			return nil
		default:
			return err
		}
	}
	kopf.Daemon(volumeclaims, shrink, kopf.ID("shrink"))
}

// The timer is called every ten seconds after the claim has not changed for ten minutes.
func ExampleTimer() {
	ping := func(_ context.Context, t *kopf.Tick) error {
		if t.Retry() > 0 {
			t.Logger().Info("trying again", "since", t.Started())
		}
		return kopf.Temporary(errors.New("the volume does not answer"), time.Second) // instead of the interval
	}
	kopf.Timer(volumeclaims, ping, kopf.ID("ping"),
		kopf.InitialDelay(time.Minute), kopf.Interval(10*time.Second), kopf.Idle(10*time.Minute), kopf.Retries(5))
}

// With Go types, a daemon has the object as it was when it began, and as it is.
func ExampleTyped_Daemon() {
	follow := func(_ context.Context, pod *corev1.Pod, t *kopf.Task) error {
		for !t.Wait(10 * time.Second) {
			var now corev1.Pod
			if err := t.Decode(&now); err != nil {
				return err
			}
			t.Logger().Info("still there", "node", pod.Spec.NodeName, "phase", now.Status.Phase)
		}
		return nil
	}
	kopf.For[*corev1.Pod](kopf.DefaultRegistry).Daemon(follow, kopf.ID("follow"))
}

// With Go types, a timer has the object as it was when it was called.
func ExampleTyped_Timer() {
	count := func(_ context.Context, pod *corev1.Pod, t *kopf.Tick) error {
		t.SetResult(len(pod.Spec.Containers))
		return nil
	}
	kopf.For[*corev1.Pod](kopf.DefaultRegistry).Timer(count, kopf.ID("count"), kopf.Interval(time.Minute))
}

// Different initial delays spread the timers of many objects after a start.
func ExampleInitialDelayFunc() {
	spread := func(a kopf.Arguments) time.Duration { return time.Duration(len(a.Name())%10) * time.Second }
	kopf.Timer(volumeclaims, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("refresh"),
		kopf.InitialDelayFunc(spread), kopf.Interval(time.Minute), kopf.Sharp())
}

// Each object says how often it is checked.
func ExampleIntervalFunc() {
	perObject := func(a kopf.Arguments) time.Duration {
		seconds, given := a.Spec().Int64("checkEverySeconds")
		if !given {
			return time.Minute
		}
		return time.Duration(seconds) * time.Second
	}
	kopf.Timer(volumeclaims, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("check"), kopf.IntervalFunc(perObject))
}

// A backup is made every night. If the operator was not running then, the last one that was missed is made up for.
func ExampleSchedule() {
	backup := func(_ context.Context, t *kopf.Tick) error {
		t.Logger().Info("The backup is made.", "job", t.Name()+"-"+t.Scheduled().UTC().Format("200601021504"))
		return nil
	}
	kopf.Timer(volumeclaims, backup, kopf.ID("backup"), kopf.Schedule("0 3 * * *", kopf.TimeZone("Europe/Berlin"), kopf.CatchUp(1)))
}

// Each object has its schedule, which can name its time zone.
func ExampleScheduleFunc() {
	perObject := func(a kopf.Arguments) (string, error) {
		schedule, given := a.Spec().String("schedule")
		if !given {
			return "@daily", nil
		}
		return schedule, nil
	}
	kopf.Timer(volumeclaims, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("backup"), kopf.ScheduleFunc(perObject))
}

// A schedule that a user has mistyped is refused when the object is created or changed.
func ExampleCheckSchedule() {
	checkSchedule := func(_ context.Context, a *kopf.Admission) error {
		schedule, given := a.Spec().String("schedule")
		if err := kopf.CheckSchedule(schedule, kopf.TimeZone("Europe/Berlin")); given && err != nil {
			return kopf.Reject(err.Error(), 422)
		}
		return nil
	}
	kopf.OnValidate(volumeclaims, checkSchedule, kopf.Operations("CREATE", "UPDATE"), kopf.ID("checkSchedule"))
}

// An index has the names of the pods of every node. Handlers look them up without a request.
func ExampleNewIndex() {
	registry := kopf.NewRegistry()
	podsByNode := kopf.NewIndex(registry, kopf.Resource("v1", "pods"), func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		node, scheduled := i.Spec().String("nodeName")
		if !scheduled {
			return map[string]string{}, nil // nothing of this pod is in the index
		}
		return map[string]string{node: i.Name()}, nil
	}, kopf.ID("podsByNode"))
	registry.Timer(kopf.Resource("v1", "nodes"), func(_ context.Context, t *kopf.Tick) error {
		t.Logger().Info("the node has pods", "pods", podsByNode.Get(t.Name()))
		return nil
	}, kopf.ID("count"), kopf.Interval(time.Minute))
	fmt.Println(podsByNode.Len(), "keys before an operator runs")
	// Output: 0 keys before an operator runs
}

// An index with Go types. Without a useful key, all values have the same one.
func ExampleNewIndexOf() {
	type identity struct{ namespace, name string }
	running := kopf.NewIndexOf(kopf.For[*corev1.Pod](kopf.NewRegistry()), func(_ context.Context, pod *corev1.Pod, i *kopf.Indexed) (map[struct{}]identity, error) {
		if pod.Status.Phase != corev1.PodRunning {
			return map[struct{}]identity{}, nil
		}
		return map[struct{}]identity{{}: {i.Namespace(), i.Name()}}, nil
	}, kopf.ID("running"))
	for _, pod := range running.Get(struct{}{}) {
		fmt.Println(pod.namespace, pod.name)
	}
}

// One index has the names of all workloads of a team, whatever their kind is.
func ExampleFillIndex() {
	registry := kopf.NewRegistry()
	byTeam := func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		return map[string]string{i.Labels()["team"]: i.Resource().Kind + "/" + i.Name()}, nil
	}
	workloads := kopf.NewIndex(registry, kopf.Resource("apps", "v1", "deployments"), byTeam, kopf.ID("byTeam"))
	kopf.FillIndex(registry, workloads, kopf.Resource("apps", "v1", "statefulsets"), byTeam, kopf.ID("byTeam"))
	kopf.FillIndexOf(kopf.For[*corev1.Pod](registry), workloads, func(_ context.Context, _ *corev1.Pod, i *kopf.Indexed) (map[string]string, error) {
		return map[string]string{i.Labels()["team"]: "Pod/" + i.Name()}, nil
	}, kopf.ID("podsByTeam"), kopf.Field("metadata.ownerReferences"), kopf.Value(kopf.Absent()))
	registry.OnEvent(kopf.Resource("teams"), func(_ context.Context, e *kopf.WatchEvent) error {
		e.Logger().Info("the team has workloads", "workloads", workloads.Get(e.Name()))
		return nil
	}, kopf.ID("count"))
}

package kopftest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	machinery "k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

const crds = "../../examples/crd"

var examples = kopf.Resource("kopfexamples")

// example returns an object of the resource kopfexamples.
func example(name string) *unstructured.Unstructured {
	return kopftest.Object(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {namespace: ns, name: ` + name + `}, spec: {size: 1}}`)
}

// declaring returns a function that declares the same handlers for every start.
func declaring(declare func(r *kopf.Registry)) func() *kopf.Registry {
	return func() *kopf.Registry {
		r := kopf.NewRegistry()
		declare(r)
		return r
	}
}

// inVirtualTime runs a test of an operator.
func inVirtualTime(t *testing.T, declare func(r *kopf.Registry), test func(t *testing.T, h *kopftest.Harness), options ...kopftest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, kopftest.New(t, declaring(declare), append(options, kopftest.CRDs(crds))...))
	})
}

// summary describes calls in one line each.
func summary[T fmt.Stringer](of []T) string {
	var lines []string
	for _, one := range of {
		lines = append(lines, one.String())
	}
	return strings.Join(lines, "\n")
}

func TestRetryAfterAnHour(t *testing.T) {
	declare := func(r *kopf.Registry) {
		r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
			if c.Retry() == 0 {
				return kopf.Temporary(errors.New("not yet"), time.Hour)
			}
			c.SetResult("done")
			return nil
		}, kopf.ID("create"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		one := example("one")
		h.Create(one)
		h.Advance(time.Hour - time.Second)
		if got := summary(h.Calls()); got != "create of ns/one, attempt 1, failed: not yet" || len(h.Writes()) != 1 {
			t.Errorf("got %s, and %d writes", got, len(h.Writes()))
		}
		h.Advance(time.Second)
		want := "create of ns/one, attempt 1, failed: not yet\ncreate of ns/one, attempt 2, succeeded"
		if got := summary(h.Calls("create")); got != want {
			t.Errorf("got %s", got)
		}
		h.Get(one)
		if result, _, _ := unstructured.NestedString(one.Object, "status", "create"); result != "done" || len(h.Writes()) != 3 {
			t.Errorf("got %v, and writes %v", one.Object["status"], h.Writes())
		}
		var reasons []string
		for _, event := range h.Events() {
			reasons = append(reasons, event.Reason)
		}
		if got := strings.Join(reasons, " "); got != "HandlerRetrying HandlerSucceeded CycleFinished" {
			t.Errorf("the events are %s", got)
		}
		if got := summary(h.Logs()); !strings.Contains(got, "01:00:00 The handler succeeded. handler=create object=KopfExample ns/one") {
			t.Errorf("the log is\n%s", got)
		}
	})
}

// A function that returns no error can have failed nevertheless.
func TestCallsSayWhyAHandlerHasFailed(t *testing.T) {
	for name, test := range map[string]struct {
		fn   func(*kopf.Change)
		want string
	}{
		"a mistake in its sub-handlers": {func(c *kopf.Change) {
			c.Subhandler("a", func(context.Context, *kopf.Change) error { return nil })
			c.Subhandler("a", func(context.Context, *kopf.Change) error { return nil })
		}, `two sub-handlers have the id "fn/a": each needs its own`},
		"a result that cannot be stored": {func(c *kopf.Change) { c.SetResult(func() {}) }, "the result cannot be stored in the status"},
		"a patch that cannot be made":    {func(c *kopf.Change) { c.Patch().Set(func() {}, "spec", "size") }, `the patch of the field "spec.size" cannot be made`},
		"a function of the patch": {func(c *kopf.Change) {
			kopf.Update(c, func(*corev1.ConfigMap) error { return nil })
		}, "the object is a KopfExample.kopf.dev: use the type of the object"},
	} {
		t.Run(name, func(t *testing.T) {
			declare := func(r *kopf.Registry) {
				r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error { test.fn(c); return nil }, kopf.ID("fn"))
			}
			inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
				h.Create(example("one"))
				h.Settle()
				calls := h.Calls("fn")
				if len(calls) != 1 || calls[0].Err == nil || !strings.Contains(calls[0].String(), "failed: ") || !strings.Contains(calls[0].Err.Error(), test.want) {
					t.Errorf("got %v", calls)
				}
			})
		})
	}
}

// The parent is called again until its sub-handlers are done, which is no failure.
func TestCallsTellSubhandlersFromTheirParent(t *testing.T) {
	declare := func(r *kopf.Registry) {
		r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
			c.Subhandler("a", func(_ context.Context, c *kopf.Change) error {
				if c.Retry() == 0 {
					return kopf.Temporary(errors.New("not yet"), time.Minute)
				}
				return nil
			})
			return nil
		}, kopf.ID("fn"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		h.Create(example("one"))
		h.Settle()
		h.Advance(time.Minute)
		want := strings.Join([]string{
			"fn of ns/one, attempt 1, succeeded", "fn/a of ns/one, attempt 1, failed: not yet",
			"fn of ns/one, attempt 2, succeeded", "fn/a of ns/one, attempt 2, succeeded",
		}, "\n")
		if got := summary(h.Calls()); got != want {
			t.Errorf("got\n%s", got)
		}
	})
}

func TestStagesOfStoppingADaemon(t *testing.T) {
	var stages []string
	declare := func(r *kopf.Registry) {
		r.Daemon(examples, func(ctx context.Context, task *kopf.Task) error {
			began := time.Now()
			stage := func(name string) { stages = append(stages, fmt.Sprintf("%s after %v", name, time.Since(began))) }
			<-task.Stopped()
			stage("asked")
			<-ctx.Done()
			stage("canceled")
			time.Sleep(time.Minute)
			stage("returns")
			return nil
		}, kopf.ID("watch"), kopf.CancellationBackoff(10*time.Second), kopf.CancellationTimeout(20*time.Second))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		one := example("one")
		h.Create(one)
		h.Settle()
		if got := summary(h.Calls()); got != "watch of ns/one, attempt 1, is running" {
			t.Errorf("got %s", got)
		}
		h.Advance(time.Hour)
		h.Delete(one)
		h.Advance(29 * time.Second)
		if !h.Exists(one) {
			t.Error("the object goes before the daemon is abandoned")
		}
		h.Advance(time.Second)
		if h.Exists(one) {
			t.Error("the object stays although the daemon is abandoned")
		}
		h.Advance(time.Minute)
		if got := strings.Join(stages, ", "); got != "asked after 1h0m0s, canceled after 1h0m10s, returns after 1h1m10s" {
			t.Errorf("got %s", got)
		}
	})
}

// In a month, the operator wakes up for the timer, and makes no request: neither to write, nor to
// list or watch again.
func TestAMonthOfAnHourlyTimer(t *testing.T) {
	ticks := 0
	declare := func(r *kopf.Registry) {
		r.Timer(examples, func(context.Context, *kopf.Tick) error {
			ticks++
			return nil
		}, kopf.ID("tick"), kopf.Interval(time.Hour))
	}
	began := time.Now()
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		h.Create(example("one"))
		h.Settle()
		requests := h.Fail(kopftest.Requests{}, 0, errors.New("there must be no request"))
		before := wakeUps()
		h.Advance(30 * 24 * time.Hour)
		woken := wakeUps() - before
		if ticks != 30*24+1 || len(h.Calls()) != ticks || requests.Count() != 0 {
			t.Errorf("%d ticks, %d calls, %d requests", ticks, len(h.Calls()), requests.Count())
		}
		requests.End()
		const queue = 2 * 30 * 24 * 360 // the queue of controller-runtime looks at its state every 10 s
		if woken > queue*115/100 {      // with a task of the operator in each minute, it would be a sixth more
			t.Errorf("%d wake-ups, %d of them by the queue", woken, queue)
		}
		t.Logf("%d wake-ups, %d of them by the queue", woken, queue)
	})
	t.Logf("a month took %v", time.Since(began))
}

// wakeUps returns how often a goroutine of the process has begun to run. The runtime counts one of
// eight.
func wakeUps() (total uint64) {
	samples := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(samples)
	for _, count := range samples[0].Value.Float64Histogram().Counts {
		total += count
	}
	return total * 8
}

func TestIndex(t *testing.T) {
	var index *kopf.Index[string, string]
	declare := func(r *kopf.Registry) {
		index = kopf.NewIndex(r, kopf.Resource("v1", "configmaps"), func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
			return map[string]string{i.Labels()["app"]: i.Name()}, nil
		}, kopf.ID("apps"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		if got := index.Get("a"); fmt.Sprint(got) != "[first]" {
			t.Errorf("objects of the start: got %v", got)
		}
		second := kopftest.Object(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: second, labels: {app: a}}}`)
		h.Create(second)
		h.Settle()
		if got := index.Get("a"); len(got) != 2 {
			t.Errorf("got %v", got)
		}
		h.Patch(second, `{"metadata":{"labels":{"app":"b"}}}`)
		h.Settle()
		if got := fmt.Sprint(index.Get("a"), index.Get("b")); got != "[first] [second]" {
			t.Errorf("got %v", got)
		}
		h.Delete(second)
		h.Settle()
		if got := index.Get("b"); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	}, kopftest.Objects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "first", Labels: map[string]string{"app": "a"}}}))
}

func TestAdmission(t *testing.T) {
	declare := func(r *kopf.Registry) {
		r.OnValidate(examples, func(_ context.Context, a *kopf.Admission) error {
			if size, _ := a.Spec().Int64("size"); size > 5 {
				return kopf.Reject("too big", 422)
			}
			a.Warn("take care")
			return nil
		}, kopf.ID("check"))
		r.OnMutate(examples, func(_ context.Context, a *kopf.Admission) error {
			a.Patch().Set("blue", "spec", "color")
			return nil
		}, kopf.ID("paint"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		one := example("one")
		h.Create(one)
		if color, _, _ := unstructured.NestedString(one.Object, "spec", "color"); color != "blue" {
			t.Errorf("the object is not mutated: %v", one.Object)
		}
		big := example("two")
		_ = unstructured.SetNestedField(big.Object, int64(6), "spec", "size")
		err := h.Client().Create(t.Context(), big)
		if !apierrors.IsInvalid(err) && (err == nil || !strings.Contains(err.Error(), "too big")) {
			t.Errorf("got %v", err)
		}
		if got := len(h.Calls("check")); got != 2 {
			t.Errorf("%d reviews: %v", got, summary(h.Calls()))
		}
		h.Stop()
		if err := h.Client().Create(t.Context(), example("three")); err != nil {
			t.Errorf("the webhooks of a stopped operator remain: %v", err)
		}
		h.Start()
	})
}

// external stores the progress outside of the objects. It survives restarts, as a database
// does.
type external struct{ records map[string]storage.Record }

func (e external) Fetch(_ context.Context, body *object.Body, id string) (*storage.Record, error) {
	if record, ok := e.records[body.Name()+" "+id]; ok {
		return &record, nil
	}
	return nil, nil
}

func (e external) Store(_ context.Context, body *object.Body, _ storage.Patch, id string, record *storage.Record) error {
	e.records[body.Name()+" "+id] = *record
	return nil
}

func (e external) Purge(_ context.Context, body *object.Body, _ storage.Patch, id string) error {
	delete(e.records, body.Name()+" "+id)
	return nil
}

func (external) Clear(essence object.Essence) object.Essence { return essence }

func TestStorageOfOnesOwn(t *testing.T) {
	progress := external{records: map[string]storage.Record{}}
	declare := func(r *kopf.Registry) {
		r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
			if c.Retry() < 2 {
				return kopf.Temporary(errors.New("not yet"), time.Hour)
			}
			return nil
		}, kopf.ID("create"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		h.Create(example("one"))
		h.Advance(30 * time.Minute)
		if len(progress.records) != 1 || len(h.Writes()) != 0 {
			t.Errorf("got %v, and writes %v", progress.records, h.Writes())
		}
		h.Restart()
		h.Advance(3 * time.Hour)
		if got := h.Calls("create"); len(got) != 3 || got[2].Attempt != 3 || len(progress.records) != 0 {
			t.Errorf("got %v, and %v", summary(got), progress.records)
		}
	}, kopftest.Settings(func(s *kopf.Settings) { s.Persistence.Progress = progress }))
}

func TestTypedHandlers(t *testing.T) {
	declare := func(r *kopf.Registry) {
		kopf.For[*corev1.ConfigMap](r).OnUpdate(func(_ context.Context, _ *corev1.ConfigMap, c *kopf.Change) error {
			var old corev1.ConfigMap
			_, err := c.DecodeOld(&old)
			if err != nil {
				return err
			}
			kopf.Update(c, func(m *corev1.ConfigMap) error {
				m.Data["was"] = old.Data["is"]
				return nil
			})
			return nil
		}, kopf.ID("remember"), kopf.Field("data.is"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one"}, Data: map[string]string{"is": "a"}}
		h.Create(one)
		h.Settle()
		h.Patch(one, `{"data":{"is":"b"}}`)
		h.Settle()
		h.Get(one)
		if one.Data["was"] != "a" {
			t.Errorf("got %v", one.Data)
		}
	})
}

func TestRestartAndCrash(t *testing.T) {
	attempts := 0
	declare := func(r *kopf.Registry) {
		starts := 0 // forgotten with every start
		r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
			starts++
			attempts++
			if starts > 1 {
				t.Error("the closure survives")
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Minute):
				c.SetResult(attempts)
				return nil
			}
		}, kopf.ID("create"))
		r.OnResume(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("resume"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		one := example("one")
		h.Create(one)
		h.Advance(30 * time.Second)
		h.Crash()
		h.Advance(time.Minute)
		if attempts != 2 || !strings.Contains(summary(h.Calls("create")), "attempt 1, succeeded") {
			t.Errorf("%d attempts: %v", attempts, summary(h.Calls()))
		}
		writes := len(h.Writes())
		h.Restart()
		h.Settle()
		if attempts != 2 || len(h.Calls("resume")) == 0 || len(h.Writes()) != writes {
			t.Errorf("%d attempts, %d writes: %v", attempts, len(h.Writes())-writes, summary(h.Calls()))
		}
	})
}

// The scheme of an operator may have no built-in types: the harness needs none.
func TestASchemeOfOwnTypesIsEnough(t *testing.T) {
	inVirtualTime(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
			kopf.Info(ctx, "Seen", "the object is new")
			return nil
		}, kopf.ID("see"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(example("one"))
		h.Settle()
		if events := h.Events(); !slices.ContainsFunc(events, func(e corev1.Event) bool { return e.Reason == "Seen" }) {
			t.Errorf("got the events %v", events)
		}
		h.Delete(example("one"))
		h.Settle()
		h.CollectGarbage()
	}, kopftest.Scheme(machinery.NewScheme()))
}

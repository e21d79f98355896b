package kopftest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// seen is what the handlers of all kinds have seen.
type seen struct {
	events, stages []string
	ticks          int
	index          *kopf.Index[string, string]
}

// life are the arguments of all kinds, typed or not.
type life interface {
	Name() string
	Labels() map[string]string
}

func (s *seen) create(c life, retry int) error {
	if retry == 0 {
		return kopf.Temporary(fmt.Errorf("%s is not ready", c.Name()), time.Hour)
	}
	return nil
}

func (s *seen) daemon(ctx context.Context, stopped <-chan struct{}) error {
	began := time.Now()
	<-stopped
	s.stages = append(s.stages, fmt.Sprint("asked after ", time.Since(began)))
	<-ctx.Done()
	s.stages = append(s.stages, fmt.Sprint("canceled after ", time.Since(began)))
	time.Sleep(time.Minute) // it is abandoned
	return nil
}

func values(c life) map[string]string { return map[string]string{c.Labels()["color"]: c.Name()} }

func (s *seen) declareUntyped(r *kopf.Registry) {
	of := kopf.Resource("v1", "configmaps")
	r.OnCreate(of, func(_ context.Context, c *kopf.Change) error { return s.create(c, c.Retry()) }, kopf.ID("create"))
	r.OnEvent(of, func(_ context.Context, e *kopf.WatchEvent) error {
		s.events = append(s.events, string(e.Type()))
		return nil
	}, kopf.ID("event"))
	r.Daemon(of, func(ctx context.Context, task *kopf.Task) error { return s.daemon(ctx, task.Stopped()) },
		kopf.ID("daemon"), kopf.CancellationBackoff(10*time.Second), kopf.CancellationTimeout(20*time.Second))
	r.Timer(of, func(context.Context, *kopf.Tick) error { s.ticks++; return nil }, kopf.ID("tick"), kopf.Interval(time.Hour))
	s.index = kopf.NewIndex(r, of, func(_ context.Context, i *kopf.Indexed) (map[string]string, error) { return values(i), nil }, kopf.ID("colors"))
	r.OnMutate(of, func(_ context.Context, a *kopf.Admission) error { a.Patch().SetLabel("color", "blue"); return nil }, kopf.ID("paint"))
	r.OnValidate(of, func(_ context.Context, a *kopf.Admission) error {
		if size, _ := a.Body().View().String("data", "size"); size == "big" {
			return kopf.Reject("too big", 422)
		}
		return nil
	}, kopf.ID("check"))
}

func (s *seen) declareTyped(r *kopf.Registry) {
	of := kopf.For[*corev1.ConfigMap](r)
	of.OnCreate(func(_ context.Context, _ *corev1.ConfigMap, c *kopf.Change) error { return s.create(c, c.Retry()) }, kopf.ID("create"))
	of.OnEvent(func(_ context.Context, _ *corev1.ConfigMap, e *kopf.WatchEvent) error {
		s.events = append(s.events, string(e.Type()))
		return nil
	}, kopf.ID("event"))
	of.Daemon(func(ctx context.Context, _ *corev1.ConfigMap, task *kopf.Task) error {
		return s.daemon(ctx, task.Stopped())
	},
		kopf.ID("daemon"), kopf.CancellationBackoff(10*time.Second), kopf.CancellationTimeout(20*time.Second))
	of.Timer(func(context.Context, *corev1.ConfigMap, *kopf.Tick) error { s.ticks++; return nil }, kopf.ID("tick"), kopf.Interval(time.Hour))
	s.index = kopf.NewIndexOf(of, func(_ context.Context, _ *corev1.ConfigMap, i *kopf.Indexed) (map[string]string, error) {
		return values(i), nil
	}, kopf.ID("colors"))
	of.OnMutate(func(_ context.Context, _ *corev1.ConfigMap, a *kopf.Admission) error {
		a.Patch().SetLabel("color", "blue")
		return nil
	}, kopf.ID("paint"))
	of.OnValidate(func(_ context.Context, configMap *corev1.ConfigMap, a *kopf.Admission) error {
		if configMap.Data["size"] == "big" {
			return kopf.Reject("too big", 422)
		}
		return nil
	}, kopf.ID("check"))
}

// Handlers of all kinds live through the same in virtual time, with and without Go types.
func TestAllKindsOfHandlers(t *testing.T) {
	for name, declare := range map[string]func(*seen, *kopf.Registry){"untyped": (*seen).declareUntyped, "typed": (*seen).declareTyped} {
		t.Run(name, func(t *testing.T) {
			s := &seen{}
			inVirtualTime(t, func(r *kopf.Registry) { declare(s, r) }, func(t *testing.T, h *kopftest.Harness) { liveThrough(t, h, s) })
		})
	}
}

func liveThrough(t *testing.T, h *kopftest.Harness, s *seen) {
	t.Helper()
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one"}}
	h.Create(one)
	h.Advance(time.Hour)
	if got, want := summary(h.Calls("create")), "create of ns/one, attempt 1, failed: one is not ready\ncreate of ns/one, attempt 2, succeeded"; got != want {
		t.Errorf("got %s", got)
	}
	if one.Labels["color"] != "blue" || fmt.Sprint(s.index.Get("blue")) != "[one]" || s.ticks != 2 || !slices.Contains(s.events, "ADDED") {
		t.Errorf("got %v, index %v, %d ticks, events %v", one.Labels, s.index.Get("blue"), s.ticks, s.events)
	}
	big := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "two"}, Data: map[string]string{"size": "big"}}
	if err := h.Client().Create(t.Context(), big); err == nil || !strings.Contains(err.Error(), "too big") {
		t.Errorf("got %v", err)
	}
	h.Delete(one)
	h.Advance(30 * time.Second)
	if got := strings.Join(s.stages, ", "); got != "asked after 1h0m0s, canceled after 1h0m10s" || h.Exists(one) {
		t.Errorf("got %s", got)
	}
	h.Advance(time.Minute)
}

// Each kind of arguments can be made for a call, with and without Go types.
func TestCallOfEachKind(t *testing.T) {
	t.Run("Change", callOfKind[*kopf.Change])
	t.Run("WatchEvent", callOfKind[*kopf.WatchEvent])
	t.Run("ChildChange", callOfKind[*kopf.ChildChange])
	t.Run("Drift", callOfKind[*kopf.Drift])
	t.Run("Task", callOfKind[*kopf.Task])
	t.Run("Tick", callOfKind[*kopf.Tick])
	t.Run("Admission", callOfKind[*kopf.Admission])
	t.Run("Indexed", callOfKind[*kopf.Indexed])
}

func callOfKind[A kopf.Arguments](t *testing.T) {
	failure := errors.New("failed")
	handle := func(_ context.Context, a A) error {
		if key, _ := a.Body().View().String("data", "key"); a.Name() != "one" || key != "x" || a.Resource().Plural != "configmaps" {
			t.Errorf("got %s of %s, %s", a.Name(), a.Resource(), key)
		}
		if changing, ok := any(a).(interface{ Patch() *patch.Patch }); ok {
			changing.Patch().SetLabel("seen", "yes")
			return nil
		}
		return failure
	}
	got := kopftest.Call(t, handle, config("one", "x"), kopftest.Child(config("child", "y")), kopftest.Scheme(scheme.Scheme))
	if seen := got.Object.GetLabels()["seen"] == "yes"; seen != (got.Err == nil) || !seen && !errors.Is(got.Err, failure) {
		t.Errorf("got %v, %v", got.Err, got.Object)
	}
	typed := kopftest.CallFor(t, func(ctx context.Context, object *corev1.ConfigMap, a A) error {
		if object.Data["key"] != "x" {
			t.Errorf("got %v", object)
		}
		return handle(ctx, a)
	}, config("one", "x"), kopftest.Child(config("child", "y")), kopftest.Scheme(scheme.Scheme))
	if (typed.Err == nil) != (got.Err == nil) || typed.Object.GetLabels()["seen"] != got.Object.GetLabels()["seen"] {
		t.Errorf("got %v, %v", typed.Err, typed.Object)
	}
}

package kopftest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

func config(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u"}, Data: map[string]string{"key": value}}
}

func TestCallOfAChangeHandler(t *testing.T) {
	resize := func(ctx context.Context, c *kopf.Change) error {
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "child"}}
		if err := hierarchy.Adopt(ctx, child); err != nil {
			return err
		}
		if err := c.Client().Create(ctx, child); err != nil {
			return err
		}
		c.Patch().SetLabel("seen", c.Name())
		c.SetResult(fmt.Sprintf("%s %s attempt %d of %v", c.Reason(), c.Diff(), c.Retry()+1, c.Param()))
		kopf.Info(ctx, "Resized", "It fits.")
		c.Subhandler("part", func(_ context.Context, c *kopf.Change) error {
			c.Patch().SetLabel("part", "yes")
			return nil
		})
		return nil
	}
	before, after := example("one"), example("one")
	after.SetUID("u")
	_ = unstructured.SetNestedField(after.Object, int64(2), "spec", "size")
	fakes := fake.NewClientBuilder().Build()
	got := kopftest.Call(t, resize, after, kopftest.Old(before), kopftest.Attempt(2), kopftest.Param("p"), kopftest.Client(fakes))
	if got.Err != nil || fmt.Sprint(got.Object.GetLabels()) != "map[part:yes seen:one]" || fmt.Sprint(got.Patch) != "map[metadata:map[labels:map[part:yes seen:one]]]" {
		t.Errorf("got %v, %v of %v", got.Err, got.Patch, got.Object)
	}
	if text := fmt.Sprint(got.Result); !strings.HasPrefix(text, "update ") || !strings.HasSuffix(text, " attempt 2 of p") || !strings.Contains(text, "spec.size") {
		t.Errorf("got %s", text)
	}
	if len(got.Events) != 1 || got.Events[0].Reason != "Resized" || got.Events[0].Object.Name != "one" {
		t.Errorf("got %v", got.Events)
	}
	child := &corev1.ConfigMap{}
	if err := fakes.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "child"}, child); err != nil || len(child.OwnerReferences) != 1 {
		t.Errorf("got %v, %v", child, err)
	}
	if after.GetLabels() != nil {
		t.Error("the object of the test has changed")
	}
}

func TestCallSaysWhatFailsInSubhandlers(t *testing.T) {
	boom := errors.New("boom")
	labelPart := func(name string) func(context.Context, *kopf.Change) error {
		return func(_ context.Context, c *kopf.Change) error { c.Patch().SetLabel("part", name); return nil }
	}
	for name, test := range map[string]struct {
		register func(*kopf.Change)
		want     string
		called   string
	}{
		"two with one id": {func(c *kopf.Change) {
			c.Subhandler("a", labelPart("a"))
			c.Subhandler("a", labelPart("a"))
		}, `two sub-handlers have the id "a": each needs its own`, ""},
		"an option of other handlers": {func(c *kopf.Change) {
			c.Subhandler("a", labelPart("a"), kopf.Optional())
		}, "kopf.Optional is an option of OnDelete: leave it out here", ""},
		"an error": {func(c *kopf.Change) {
			c.Subhandler("a", func(context.Context, *kopf.Change) error { return boom })
			c.Subhandler("b", labelPart("b"))
		}, `the sub-handler "a": boom`, "b"},
		"an error in a sub-handler of a sub-handler": {func(c *kopf.Change) {
			c.Subhandler("a", func(_ context.Context, c *kopf.Change) error {
				c.Subhandler("b", func(context.Context, *kopf.Change) error { return boom })
				return nil
			})
			c.Subhandler("b", labelPart("b"))
		}, `the sub-handler "a/b": boom`, "b"},
		"none": {func(c *kopf.Change) {
			c.Subhandler("a", func(_ context.Context, c *kopf.Change) error {
				c.Subhandler("b", labelPart("b"))
				return nil
			})
		}, "", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := kopftest.Call(t, func(_ context.Context, c *kopf.Change) error { test.register(c); return nil }, example("one"))
			if (got.Err != nil) != (test.want != "") || got.Err != nil && !strings.Contains(got.Err.Error(), test.want) {
				t.Errorf("got %v", got.Err)
			}
			if got.Object.GetLabels()["part"] != test.called {
				t.Errorf("got %v", got.Object.GetLabels())
			}
		})
	}
}

// A handler of a field sees the field alone, as in an operator.
func TestCallOfAHandlerOfAField(t *testing.T) {
	rescale := func(_ context.Context, c *kopf.Change) error {
		c.SetResult(fmt.Sprintf("%s: %v to %v, %v", c.Reason(), c.Old().Any(), c.New().Any(), c.Diff()))
		return nil
	}
	before, after := example("one"), example("one")
	for object, size := range map[*unstructured.Unstructured]int64{before: 1, after: 2} {
		_ = unstructured.SetNestedField(object.Object, size, "spec", "size")
		_ = unstructured.SetNestedField(object.Object, fmt.Sprint("phase ", size), "status", "phase")
	}
	for field, want := range map[string]string{
		"spec.size":    "update: 1 to 2, change: 1 -> 2",
		"status.phase": "update: phase 1 to phase 2, change: \"phase 1\" -> \"phase 2\"",
		"spec.none":    "update: <nil> to <nil>, no changes",
	} {
		got := kopftest.Call(t, rescale, after, kopftest.Old(before), kopftest.Field(field))
		if got.Err != nil || got.Result != want {
			t.Errorf("%s: got %q, %v, want %q", field, got.Result, got.Err, want)
		}
	}
	if got := kopftest.Call(t, rescale, after, kopftest.Field("spec.size")); got.Err != nil || !strings.HasPrefix(fmt.Sprint(got.Result), "create: <nil> to 2") {
		t.Errorf("a creation: got %q, %v", got.Result, got.Err)
	}
}

func TestCallOfOtherKinds(t *testing.T) {
	failure := errors.New("failed")
	results := map[string]kopftest.Outcome{
		"event": kopftest.Call(t, func(context.Context, *kopf.WatchEvent) error { return failure }, example("one")),
		"daemon": kopftest.Call(t, func(_ context.Context, task *kopf.Task) error {
			return errors.Join(failure, fmt.Errorf("%v", task.StopReason()))
		}, example("one")),
		"timer": kopftest.Call(t, func(context.Context, *kopf.Tick) error { return failure }, example("one")),
		"admission": kopftest.Call(t, func(_ context.Context, a *kopf.Admission) error {
			a.Warn(string(a.Operation()))
			return failure
		}, example("one"), kopftest.Old(example("one"))),
	}
	for kind, got := range results {
		if !errors.Is(got.Err, failure) {
			t.Errorf("%s: got %v", kind, got.Err)
		}
	}
	if got := results["admission"].Warnings; fmt.Sprint(got) != "[UPDATE]" {
		t.Errorf("got %v", got)
	}
	panicking := kopftest.Call(t, func(context.Context, *kopf.Change) error { panic("of the handler") }, example("one"))
	if panicking.Err == nil || !strings.Contains(panicking.Err.Error(), "of the handler") {
		t.Errorf("got %v", panicking.Err)
	}
}

func TestCallOfTypedHandlers(t *testing.T) {
	remember := func(ctx context.Context, _ *corev1.ConfigMap, c *kopf.Change) error {
		var old corev1.ConfigMap
		_, err := c.DecodeOld(&old)
		if err != nil {
			return err
		}
		if err := c.Client().Create(ctx, config("created", "x")); err != nil {
			return err // the API server of the default client is empty
		}
		kopf.Update(c, func(m *corev1.ConfigMap) error {
			m.Data["was"] = old.Data["key"]
			return nil
		})
		return nil
	}
	got := kopftest.CallFor(t, remember, config("one", "b"), kopftest.Old(config("one", "a")))
	if got.Err != nil || fmt.Sprint(got.Object.Object["data"]) != "map[key:b was:a]" {
		t.Errorf("got %v, %v", got.Err, got.Object)
	}
	index, err := kopftest.CallIndexFor(t, func(_ context.Context, configMap *corev1.ConfigMap, i *kopf.Indexed) (map[string]string, error) {
		return map[string]string{configMap.Data["key"]: i.Name()}, nil
	}, config("one", "a"))
	if err != nil || fmt.Sprint(index) != "map[a:one]" {
		t.Errorf("got %v, %v", index, err)
	}
	misfit := example("one")
	misfit.Object["data"] = map[string]any{"key": int64(1)}
	if got := kopftest.CallFor(t, remember, misfit); got.Err == nil {
		t.Error("an object that does not fit is decoded")
	}
}

func TestArgumentsOfADriftHandler(t *testing.T) {
	decide := func(_ context.Context, c *kopf.Drift) (kopf.Resolution, error) {
		if c.Key().Kind != "ConfigMap" {
			return kopf.RestoreDrift(), kopf.Permanent(errors.New("an unknown child"))
		}
		if color, drifted := c.Field("data.key"); drifted && color.Manager == "kubectl-edit" && !c.Deleted() {
			c.Patch().Set(color.Found.Any(), "status", "tried")
			return kopf.AcceptFields(color.Path), nil
		}
		return kopf.RestoreDrift(), nil
	}
	drifted := []kopftest.CallOption{kopftest.Child(config("child", "red")), kopftest.Drifted("data.key", "kubectl-edit", "blue", "red")}
	c := kopftest.Arguments[*kopf.Drift](t, example("one"), drifted...)
	got, err := decide(t.Context(), c)
	if err != nil || !reflect.DeepEqual(got, kopf.AcceptFields("data.key")) {
		t.Errorf("got %v, %v", got, err)
	}
	if key := c.Key().String(); key != "ConfigMap default/child" || c.Child().Name() != "child" || c.Name() != "one" {
		t.Errorf("got %s, %v", key, c.Child())
	}
	deleted := kopftest.Arguments[*kopf.Drift](t, example("one"), append(drifted, kopftest.Reason(kopf.ReasonDelete))...)
	if got, err := decide(t.Context(), deleted); err != nil || !deleted.Deleted() || !reflect.DeepEqual(got, kopf.RestoreDrift()) {
		t.Errorf("got %v, %v", got, err)
	}
}

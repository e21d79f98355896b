package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/test/kopfrules"
)

// featured is an operator with what Kopf does not have: children, drift, conditions, revisions,
// rollouts, and requests of people.
type featured struct {
	*kopftest.Harness
	t        *testing.T
	revision string
	broken   map[string]bool // the objects for which the new revision fails for good
	late     map[string]bool // the objects for which it is retried
	examples []*unstructured.Unstructured
}

func (f *featured) declare() *kopf.Registry {
	r, sel := kopf.NewRegistry(), kopf.Resource("kopf.dev", "v1", "kopfexamples")
	render := func(_ context.Context, c *kopf.Change) error {
		switch {
		case f.revision == "2" && f.broken[c.Name()]:
			return kopf.Permanent(errors.New("broken"))
		case f.revision == "2" && f.late[c.Name()]:
			return kopf.Temporary(errors.New("late"), time.Hour)
		}
		c.Subhandler("part", func(context.Context, *kopf.Change) error { return nil })
		c.SetResult(map[string]any{"revision": f.revision})
		return nil
	}
	r.OnCreate(sel, render, kopf.ID("render"), kopf.Revision(f.revision), kopf.Rollout(rollout.First(1), rollout.Then(2)))
	r.OnUpdate(sel, render, kopf.ID("render"))
	r.OnField(sel, "status.phase", func(context.Context, *kopf.Change) error { return nil }, kopf.ID("phase"))
	fonts := kopf.NewIndex(r, kopf.Resource("v1", "secrets"), func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		return map[string]string{i.Name(): ""}, nil
	}, kopf.ID("fonts"))
	r.Ensure(sel, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		color, _ := c.Spec().String("color")
		near := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name()}, Data: map[string]string{"color": color, "fonts": fmt.Sprint(fonts.Len())}}
		if color != "far" {
			return []client.Object{near}, nil
		}
		return []client.Object{near, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name(), Namespace: "elsewhere"}}}, nil
	}, kopf.ID("children"), kopf.WatchIndex(fonts), kopf.WaitReady())
	r.OnDrift(sel, func(_ context.Context, c *kopf.Drift) (kopf.Resolution, error) {
		if _, found := c.Field("data.fonts"); found {
			return kopf.AcceptDrift(), nil
		}
		return kopf.RestoreDrift(), nil
	}, kopf.ID("drift"))
	r.OnChild(sel, kopf.Resource("v1", "configmaps"), func(_ context.Context, c *kopf.ChildChange) error {
		if f.late[c.Name()] {
			return kopf.Temporary(errors.New("late"), time.Hour)
		}
		return nil
	}, kopf.ID("child"))
	r.Conditions(sel)
	return r
}

// expectNothingForKopf looks at all objects as a Kopf does that takes over now, with handlers of
// the same ids and fields: no object has changed and, if all cycles have ended, none has a record.
func (f *featured) expectNothingForKopf(when string, isAtRest bool) {
	f.t.Helper()
	for _, one := range f.examples {
		if !f.Exists(one) {
			continue
		}
		f.Get(one)
		for initial, want := range map[bool]string{true: "resume", false: "noop"} {
			if got := f.kopfFinds(one, initial); got != want {
				f.t.Errorf("%s: %s: Kopf detects the cause %s, not %s", when, one.GetName(), got, want)
			}
		}
		if left := kopfrules.Records(one.GetAnnotations()); isAtRest && len(left) > 0 {
			f.t.Errorf("%s: %s has the records %v", when, one.GetName(), left)
		}
	}
}

// kopfFinds returns the cause that Kopf detects for an object.
func (f *featured) kopfFinds(one *unstructured.Unstructured, initial bool) string {
	f.t.Helper()
	found, err := kopfrules.Cause(one, initial, "status.phase")
	if err != nil {
		f.t.Fatalf("%s: %v", one.GetName(), err)
	}
	return found
}

func (f *featured) of(name string) *unstructured.Unstructured {
	i := slices.IndexFunc(f.examples, func(one *unstructured.Unstructured) bool { return one.GetName() == name })
	return f.examples[i]
}

func (f *featured) request(name, verb, value string) {
	f.t.Helper()
	f.Patch(f.of(name), fmt.Sprintf(`{"metadata":{"annotations":{"kopf.zalando.org/request-%s":%s}}}`, verb, value))
	f.Advance(time.Minute)
}

// A Kopf that takes over finds nothing to do on objects that have gone through all that it does
// not have.
func TestKopfFindsNothingToDoAfterFeaturesOfOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &featured{t: t, revision: "1", broken: map[string]bool{}, late: map[string]bool{}}
		f.Harness = kopftest.New(t, f.declare, kopftest.CRDs("../../examples/crd"), kopftest.Settings(func(s *kopf.Settings) { s.Name = "featured.example.com" }))
		f.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}})
		for i := range 6 {
			one := kopftest.Object(fmt.Sprintf(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {namespace: default, name: o%d, labels: {a: b}, annotations: {note: x, kubectl.kubernetes.io/last-applied-configuration: "{}"}}, spec: {color: blue}}`, i))
			f.examples = append(f.examples, one)
			f.Create(one)
		}
		f.Advance(time.Minute)
		f.expectNothingForKopf("after the creation", true)
		f.children()
		f.requests()
		f.rollout()
		f.Patch(f.of("o0"), `{"spec":{"color":"green"}}`)
		f.Patch(f.of("o1"), `{"metadata":{"labels":{"a":"c"}}}`)
		f.Advance(2 * time.Hour)
		f.expectNothingForKopf("after changes", true)
		f.Delete(f.of("o5"))
		f.Advance(time.Minute)
		f.expectNothingForKopf("after a deletion", true)

		f.Stop() // a change that was not handled is one for Kopf, too
		f.Patch(f.of("o0"), `{"metadata":{"labels":{"a":"d"}}}`)
		if got := f.kopfFinds(f.of("o0"), true); got != "update" {
			t.Errorf("Kopf detects the cause %s for a change", got)
		}
	})
}

// children lets others change children, and an index change.
func (f *featured) children() {
	child := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	f.Patch(child("o0"), `{"data":{"color":"red"}}`)
	f.Delete(child("o1"))
	f.Patch(child("o2"), `{"data":{"fonts":"many"}}`)
	f.Advance(time.Minute)
	f.expectNothingForKopf("after drift", true)
	f.late["o3"] = true
	f.Patch(child("o3"), `{"metadata":{"labels":{"x":"y"}}}`)
	f.Advance(time.Minute)
	if got := kopfrules.Records(f.Get(f.of("o3")).GetAnnotations()); !slices.Equal(got, []string{kopfrules.Prefix + "/child"}) {
		f.t.Errorf("the handler of children that fails has left %v", got)
	}
	f.expectNothingForKopf("while a handler of children fails", false)
	delete(f.late, "o3")
	f.Advance(2 * time.Hour)
	f.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "font"}})
	f.Advance(time.Minute)
	f.expectNothingForKopf("after a change of an index", true)
	f.Patch(f.of("o4"), `{"spec":{"color":"far"}}`)
	if err := f.Client().Status().Patch(f.t.Context(), f.of("o5").DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"b"}}`))); err != nil {
		f.t.Fatal(err)
	}
	f.Advance(time.Minute)
}

// requests lets people send requests.
func (f *featured) requests() {
	f.Patch(f.of("o4"), `{"spec":{"color":"blue"}}`)
	f.Advance(time.Minute)
	f.request("o0", "rerun", `"1 render"`)
	f.request("o1", "rerun", `"1 children"`)
	f.request("o2", "retry", `"1 render"`)
	f.request("o3", "suspend", `"forever"`)
	f.expectNothingForKopf("after requests", true)
	f.request("o3", "suspend", "null")
	f.expectNothingForKopf("after the end of a suspension", true)
}

// rollout rolls out a revision that fails, and that is corrected.
func (f *featured) rollout() {
	f.broken["o1"], f.late["o2"] = true, true
	f.Stop()
	f.revision = "2"
	f.Start()
	f.Advance(time.Minute)
	f.expectNothingForKopf("in the middle of a rollout", false)
	if got := kopfrules.Records(f.Get(f.of("o2")).GetAnnotations()); !slices.Equal(got, []string{kopfrules.Prefix + "/child", kopfrules.Prefix + "/render"}) {
		f.t.Errorf("the handlers that are retried have left %v", got)
	}
	f.request("o1", "rerun", `"2 render"`) // fails again
	f.expectNothingForKopf("after a rerun that fails", false)
	clear(f.broken)
	f.request("o1", "rerun", `"3 render"`)
	f.Restart()
	f.Advance(time.Minute)
	clear(f.late)
	f.Advance(3 * time.Hour)
	for _, one := range f.examples {
		result, _, _ := unstructured.NestedString(f.Get(one).(*unstructured.Unstructured).Object, "status", "render", "revision")
		if marks := one.GetAnnotations()[kopfrules.Prefix+"/handled-revisions"]; result != "2" || !strings.Contains(marks, `"render":"2"`) {
			f.t.Errorf("%s has the result %q, and the marks %s", one.GetName(), result, marks)
		}
	}
	f.expectNothingForKopf("after the rollout", true)
}

package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
)

// states bring an object into a situation. They are called before the first operator, after it, or
// both.
var states = map[string]struct {
	before, after func(s *scene, obj *unstructured.Unstructured)
}{
	"new":         {after: func(*scene, *unstructured.Unstructured) {}},
	"new-labeled": {after: patching(`{"metadata":{"labels":{"app":"db"}}}`)},
	"handled":     {before: func(*scene, *unstructured.Unstructured) {}},
	"resized":     {before: patching(`{"spec":{"size":1}}`), after: patching(`{"spec":{"size":2}}`)},
	"renamed":     {before: patching(`{"spec":{"size":1}}`), after: patching(`{"spec":{"name":"x"}}`)},
	"labeled":     {before: func(*scene, *unstructured.Unstructured) {}, after: patching(`{"metadata":{"labels":{"app":"db"}}}`)},
	"status": {before: func(*scene, *unstructured.Unstructured) {}, after: func(s *scene, obj *unstructured.Unstructured) {
		s.patchStatus(obj.DeepCopy(), `{"status":{"seen":true}}`)
	}},
	"deleted":        {before: func(*scene, *unstructured.Unstructured) {}, after: deleting},
	"waiting":        {before: patching(`{"metadata":{"labels":{"fails":"yes"}}}`)},
	"waiting-asked":  {before: patching(`{"metadata":{"labels":{"fails":"yes"}}}`), after: asking("retry", "1 created")},
	"waiting-cured":  {before: patching(`{"metadata":{"labels":{"fails":"yes"}}}`), after: patching(`{"metadata":{"labels":null},"spec":{"size":3}}`)},
	"waiting-drops":  {before: patching(`{"metadata":{"labels":{"fails":"yes","app":"db"}}}`), after: patching(`{"metadata":{"labels":{"app":"web"}}}`)},
	"waiting-gone":   {before: patching(`{"metadata":{"labels":{"fails":"yes"}}}`), after: deleting},
	"forgotten":      {before: func(*scene, *unstructured.Unstructured) {}, after: patching(`{"metadata":{"annotations":{"kopf.zalando.org/last-handled-configuration":null}}}`)},
	"taken-back":     {before: patching(`{"spec":{"size":1}}`), after: both(patching(`{"spec":{"size":2}}`), patching(`{"spec":{"size":1}}`))},
	"foreign":        {before: func(*scene, *unstructured.Unstructured) {}, after: patching(`{"metadata":{"annotations":{"example.com/note":"x"}}}`)},
	"deleted-held":   {before: func(*scene, *unstructured.Unstructured) {}, after: both(asking("suspend", "forever"), deleting)},
	"rerun-deleted":  {before: func(*scene, *unstructured.Unstructured) {}, after: both(asking("rerun", "1 cleaned"), deleting)},
	"rerun":          {before: func(*scene, *unstructured.Unstructured) {}, after: asking("rerun", "1 updated")},
	"rerun-mistyped": {before: func(*scene, *unstructured.Unstructured) {}, after: asking("rerun", "1 updatd")},
	"suspended":      {before: patching(`{"spec":{"size":1}}`), after: both(patching(`{"spec":{"size":2}}`), asking("suspend", "forever"))},
	"suspended-over": {before: patching(`{"spec":{"size":1}}`), after: both(patching(`{"spec":{"size":2}}`), asking("suspend", "2020-01-01T00:00:00Z"))},
}

type step = func(*scene, *unstructured.Unstructured)

func patching(body string) step {
	return func(s *scene, obj *unstructured.Unstructured) { s.patch(obj.DeepCopy(), body) }
}

func asking(verb, value string) step {
	return patching(fmt.Sprintf(`{"metadata":{"annotations":{"kopf.zalando.org/request-%s":%q}}}`, verb, value))
}

func both(first, second step) step {
	return func(s *scene, obj *unstructured.Unstructured) { first(s, obj); second(s, obj) }
}

func deleting(s *scene, obj *unstructured.Unstructured) {
	s.t.Helper()
	s.Expect(cluster.Client().Delete(s.t.Context(), obj.DeepCopy())).To(gomega.Succeed())
}

// declare declares handlers of all kinds, which take notes.
func declare(registry *kopf.Registry, calls *operators.Calls) {
	note := func(id string) func(context.Context, *kopf.Change) error {
		return func(_ context.Context, c *kopf.Change) error {
			calls.Note("%s %s", c.Name(), id)
			if strings.HasPrefix(id, "created") && c.Labels()["fails"] == "yes" {
				return kopf.Temporary(errors.New("not yet"), time.Hour)
			}
			return nil
		}
	}
	hasApp := kopf.Labels(map[string]kopf.Matcher{"app": kopf.Equal("db")})
	registry.OnCreate(examples, note("created"), kopf.ID("created"))
	registry.OnCreate(examples, note("createdApp"), kopf.ID("createdApp"), hasApp)
	registry.OnCreate(examples, note("never"), kopf.ID("never"), kopf.When(func(kopf.Arguments) bool { return false }))
	registry.OnUpdate(examples, note("updated"), kopf.ID("updated"))
	registry.OnUpdate(examples, note("resized"), kopf.ID("resized"), kopf.Field("spec.size"))
	registry.OnField(examples, "metadata.labels", note("labels"), kopf.ID("labels"))
	registry.OnUpdate(examples, note("updatedApp"), kopf.ID("updatedApp"), hasApp)
	registry.OnResume(examples, note("resumed"), kopf.ID("resumed"))
	registry.OnResume(examples, note("resumedApp"), kopf.ID("resumedApp"), hasApp)
	registry.OnDelete(examples, note("cleaned"), kopf.ID("cleaned"))
	registry.OnDelete(examples, note("cleanedMaybe"), kopf.ID("cleanedMaybe"), kopf.Optional())
	registry.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		calls.Note("%s shop", c.Name())
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name(), Namespace: c.Namespace()}, Data: map[string]string{"size": "1"}}}, nil
	}, kopf.ID("shop"))
}

// predicted returns the calls that are predicted for the start of an operator.
func (s *scene) predicted(name string) (calls []string) {
	s.t.Helper()
	said, err := s.connect().Explain(s.t.Context(), inspect.Target{Kind: "kopfexample", Namespace: s.namespace, Name: name})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	for _, h := range said.Handlers {
		id, _, _ := strings.Cut(h.ID, "/") // without the field
		call := name + " " + id
		resumes := strings.HasSuffix(h.Message, "will run when an operator starts") || strings.Contains(h.Message, "called again when an operator starts")
		isCalled := h.State == "due" || resumes
		if isCalled && !slices.Contains(calls, call) {
			calls = append(calls, call)
		}
	}
	return calls
}

// TestAnswersComeTrue predicts the calls for objects in many situations, starts an operator, and
// compares.
func TestAnswersComeTrue(t *testing.T) {
	s, former, calls := newScene(t), &operators.Calls{}, &operators.Calls{}
	s.settings.Name = "truth.example.com"
	declare(s.Registry, former)
	objects := map[string]*unstructured.Unstructured{}
	for name, state := range states {
		if state.before != nil {
			objects[name] = s.create(name)
			state.before(s, objects[name])
		}
	}
	operator := s.start()
	for name, obj := range objects {
		if strings.HasPrefix(name, "waiting") {
			s.shows(name, "created (create): waiting")
		} else {
			s.isHandled(obj)
		}
	}
	operator.Stop()
	for name, state := range states {
		if objects[name] == nil {
			objects[name] = s.create(name)
		}
		if state.after != nil {
			state.after(s, objects[name])
		}
	}

	var want []string
	for name := range states {
		want = append(want, s.predicted(name)...)
	}
	slices.Sort(want)
	if len(want) < len(states) {
		t.Errorf("nearly nothing is predicted: %q", want)
	}
	s.Registry = kopf.NewRegistry()
	declare(s.Registry, calls)
	s.start()
	s.Eventually(func() []string { return sorted(calls.All()) }).Should(gomega.Equal(want))
	s.isHandled(s.create("last"))
	s.Eventually(func() []string { return calls.Of("last") }).ShouldNot(gomega.BeEmpty())
	others := slices.DeleteFunc(sorted(calls.All()), func(call string) bool { return strings.HasPrefix(call, "last ") })
	s.Expect(others).To(gomega.Equal(want))
}

func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}

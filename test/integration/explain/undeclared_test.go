package explain

import (
	"context"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/cli/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestChildrenOfUndeclaredHandlersAreExplained(t *testing.T) {
	s := newScene(t)
	s.settings.Name = "shops.example.com"
	s.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name()}}}, nil
	}, kopf.ID("shop"))
	operator := s.start()
	s.isHandled(s.create("one"))
	s.isHandled(s.create("other"))
	operator.Stop()

	s.Registry = kopf.NewRegistry()
	s.OnUpdate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("update"))
	s.says("one",
		"The object has children of a handler of kopf.Ensure, but this program declares none for it: they are left alone, unless another operator takes care of them.",
		"Children\n  - ConfigMap NAMESPACE/one (shop) is left alone, because its handler is not declared: if it was renamed, declare it with kopf.ID(\"shop\"); otherwise, delete the child\n\n")
}

// An upgrade that renames or removes a handler makes the objects ready that it has stalled.
func TestForgottenFailuresArePlanned(t *testing.T) {
	s := newScene(t)
	s.Conditions(examples)
	s.OnCreate(examples, fail, kopf.ID("former"))
	s.OnCreate(examples, fail, kopf.ID("kept"), kopf.Labels(matching(kopf.Equal("db"))))
	operator := s.start()
	for _, name := range []string{"one", "other"} {
		s.isHandled(s.create(name))
	}
	s.says("one", "Stalled is True", "with the reason HandlersFailed")
	s.says("other", "Stalled is True")
	operator.Stop()
	plan := func() string {
		plan, err := s.connect().NewPlan(t.Context(), s.namespace)
		s.Expect(err).NotTo(gomega.HaveOccurred())
		return plan.Text(inspect.Style{})
	}
	const one, many = "  ! 1 object is stalled by a failure of former, ", "  ! 2 objects are stalled by a failure of former, which is not declared: it no longer counts, and without another reason, " +
		"the condition Ready becomes true. If the handler was renamed, declare it with its former id (kopf.ID).\n"
	s.Expect(plan()).NotTo(gomega.ContainSubstring("is not declared"))

	s.Registry = kopf.NewRegistry()
	s.OnCreate(examples, create, kopf.ID("renamed"))
	s.Expect(plan()).NotTo(gomega.ContainSubstring("is not declared")) // the operator writes no conditions
	s.Conditions(examples)
	s.Expect(plan()).To(gomega.ContainSubstring(many))
	other := testenv.NewObject("KopfExample", s.namespace, "other", nil)
	s.patch(other.DeepCopy(), `{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":"forever"}}}`)
	s.Expect(plan()).To(gomega.ContainSubstring(one))
	s.start()
	s.says("one", "Ready is True")
	s.Expect(plan()).NotTo(gomega.ContainSubstring("is not declared"))
	s.says("other", "Stalled is True")
}

// The answers name what keeps an operator of the program from starting; the operator says the same.
func TestRefusalsToStartAreExplained(t *testing.T) {
	ensure := func(s *scene) {
		s.Ensure(examples, func(context.Context, *kopf.Change) ([]client.Object, error) { return nil, nil }, kopf.ID("shop"))
	}
	const settings = "Perhaps nothing happens now, because\n  - An operator with the settings that are known here does not start: "
	tests := map[string]struct {
		arrange []func(s *scene)
		title   string
		problem string
	}{
		"no name":          {[]func(s *scene){ensure}, settings, `kopf.Ensure "shop" needs an operator with a name that stays the same for ever: `},
		"invalid settings": {[]func(s *scene){func(s *scene) { s.settings.Execution.Workers = -1 }}, settings, "Execution.Workers "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.OnCreate(examples, create, kopf.ID("fn"))
			for _, arrange := range test.arrange {
				arrange(s)
			}
			s.create("one")
			s.Expect(s.explain("one")).To(gomega.And(gomega.ContainSubstring(test.title), gomega.ContainSubstring(test.problem)))
			plan, err := s.connect().NewPlan(t.Context(), s.namespace)
			s.Expect(err).NotTo(gomega.HaveOccurred())
			s.Expect(plan.Text(inspect.Style{})).To(gomega.And(gomega.ContainSubstring(strings.Replace(test.title, "happens now,", "happens,", 1)), gomega.ContainSubstring(test.problem)))
			s.Expect(plan.Refuses()).To(gomega.BeTrue())
			err = kopf.Run(t.Context(), kopf.Options{Registry: s.Registry, Settings: s.settings, Config: cluster.Config()})
			s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(test.problem)))
		})
	}
}

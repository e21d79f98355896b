package explain

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/inspect"
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
	s.states("one", "", "noop", "update (update): done", "ConfigMap default/one (shop): undeclared")
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
	s.states("one", "stalled", "noop", "former (create): failed", "kept (create): mismatched")
	s.shows("other", "former (create): failed")
	operator.Stop()
	var plan *inspect.Plan
	forgotten := func() map[string]int {
		var err error
		plan, err = s.connect().NewPlan(t.Context(), s.namespace)
		s.Expect(err).NotTo(gomega.HaveOccurred())
		return plan.Resources[0].ForgottenFailures
	}
	s.Expect(forgotten()).To(gomega.BeEmpty())

	s.Registry = kopf.NewRegistry()
	s.OnCreate(examples, create, kopf.ID("renamed"))
	s.Expect(forgotten()).To(gomega.BeEmpty()) // the operator writes no conditions
	s.Conditions(examples)
	s.Expect(forgotten()).To(gomega.Equal(map[string]int{"former": 2}))
	s.writes("the plan", plan.Text(inspect.Style{}))
	other := testenv.NewObject("KopfExample", s.namespace, "other", nil)
	s.patch(other.DeepCopy(), `{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":"forever"}}}`)
	s.Expect(forgotten()).To(gomega.Equal(map[string]int{"former": 1}))
	s.start()
	s.states("one", "ready", "noop", "renamed (create): done")
	s.Expect(forgotten()).To(gomega.BeEmpty())
	s.states("other", "suspended", "noop", "held", "renamed (create): done")
}

// The answers name what keeps an operator of the program from starting; the operator says the same.
func TestRefusalsToStartAreExplained(t *testing.T) {
	ensure := func(s *scene) {
		s.Ensure(examples, func(context.Context, *kopf.Change) ([]client.Object, error) { return nil, nil }, kopf.ID("shop"))
	}
	tests := map[string]struct {
		arrange func(s *scene)
		problem string
		facts   []string
	}{
		"no name":          {ensure, `kopf.Ensure "shop" needs an operator with a name that stays the same for ever: `, []string{"create", "perhaps held", "fn (create): due", "shop (ensure): due"}},
		"invalid settings": {func(s *scene) { s.settings.Execution.Workers = -1 }, "Execution.Workers ", []string{"create", "perhaps held", "fn (create): due"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.OnCreate(examples, create, kopf.ID("fn"))
			test.arrange(s)
			s.create("one")
			s.states("one", "", test.facts...)
			plan, err := s.connect().NewPlan(t.Context(), s.namespace)
			s.Expect(err).NotTo(gomega.HaveOccurred())
			s.writes("the plan", plan.Text(inspect.Style{}))
			s.Expect(plan.Refuses()).To(gomega.BeTrue())
			err = kopf.Run(t.Context(), kopf.Options{Registry: s.Registry, Settings: s.settings, Config: cluster.Config()})
			s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(test.problem)))
		})
	}
}

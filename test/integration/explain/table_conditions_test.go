package explain

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// withConditions is about an object with conditions that an earlier operator has handled.
func withConditions(declare, after func(s *scene), facts ...string) situation {
	return situation{
		arrange: func(s *scene) {
			s.Conditions(examples)
			declare(s)
			former := s.start()
			s.isHandled(s.create("one"))
			former.Stop()
			after(s)
		},
		stopped: facts, running: append(slices.Clone(facts), "idle"),
	}
}

// conditioned are situations of objects whose status has conditions.
var conditioned = map[string]situation{
	"the handlers have succeeded, which the conditions say": withConditions(
		func(s *scene) { s.OnCreate(examples, create, kopf.ID("fn")) }, asItIs,
		"noop", "fn (create): done"),
	"a handler has failed for good, which the conditions say": withConditions(
		func(s *scene) {
			s.OnCreate(examples, fail, kopf.ID("fn"))
			s.OnUpdate(examples, create, kopf.ID("changed"))
		}, asItIs,
		"noop", "fn (create): failed", "changed (update): done"),
	"a sub-handler has failed for good, which the conditions say": withConditions(
		func(s *scene) {
			s.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
				c.Subhandler("disk", fail)
				return c.Execute(ctx)
			}, kopf.ID("fn"))
		}, asItIs,
		"noop", "fn (create): done", "fn/disk (subhandler): failed"),
	"a function of children has failed for good, which the conditions say": withConditions(
		func(s *scene) {
			s.Ensure(examples, func(context.Context, *kopf.Change) ([]client.Object, error) {
				return nil, kopf.Permanent(errors.New("no such size"))
			}, kopf.ID("shop"))
			s.releaseAfterwards()
		}, asItIs,
		"noop", "shop (ensure): failed"),
	"a function of children has failed for good to restore them": failingToRestore(),
	"the conditions are about an earlier generation": {
		arrange: func(s *scene) {
			s.Conditions(examples)
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.OnUpdate(examples, fail, kopf.ID("changed"))
			former := s.start()
			s.isHandled(s.create("one"))
			former.Stop()
			s.patch(s.object(), `{"spec":{"size":1}}`)
		},
		stopped: []string{"update", `add spec: {"size":1}`, "fn (create): done", "changed (update): due"},
		running: []string{"noop", "fn (create): done", "changed (update): failed", "idle"},
	},
	"another program has written the conditions": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.patchStatus(s.create("one"), `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Busy","message":"not yet"},{"type":"Other","status":"True","reason":"So"}]}}`)
		},
		stopped: []string{"create", "fn (create): due"},
		running: []string{"noop", "fn (create): done", "idle"},
	},
}

// failingToRestore is about a function that fails when another client has changed a child.
func failingToRestore() situation {
	var fails atomic.Bool
	facts := []string{"noop", "shop (ensure): failed", "ConfigMap default/one (shop): ready"}
	return situation{
		arrange: func(s *scene) {
			fails.Store(false)
			s.Conditions(examples)
			s.Ensure(examples, func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
				if fails.Load() {
					return nil, kopf.Permanent(errors.New("no such size"))
				}
				return shop(ctx, c)
			}, kopf.ID("shop"))
			former := s.start()
			s.isHandled(s.create("one"))
			fails.Store(true)
			s.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: s.namespace}}, `{"data":{"color":"blue"}}`)
			s.shows("one", "shop (ensure): failed")
			former.Stop()
		},
		stopped: facts, running: append(slices.Clone(facts), "idle"),
	}
}

// An operator does not start if any of its resources cannot have the conditions, and the answers about
// the objects of all its resources say so.
func TestAnOperatorThatDoesNotStartIsExplained(t *testing.T) {
	pruned, without := kopf.Resource("kopf.dev", "v1", "kopfpruneds"), kopf.Resource("kopf.dev", "v1", "kopfnostatuses")
	for name, test := range map[string]struct {
		resource kopf.Selector
		refusal  string
		facts    []string
	}{
		"fields are missing":           {pruned, "the schema of kopfpruneds.v1.kopf.dev does not have the fields status.observedGeneration and status.conditions, ", []string{"create", "perhaps held", "fn (create): due"}},
		"the status is no subresource": {without, "kopfnostatuses.v1.kopf.dev has no status subresource: ", []string{"create", "held", "fn (create): paused"}},
		"no handler decides":           {examples, "which has no handlers of changes, daemons, or timers", []string{"no cause", "held", "seen (event): ready"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if s.Conditions(test.resource); name == "no handler decides" {
				s.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("seen"))
			} else {
				s.OnCreate(examples, create, kopf.ID("fn"))
				s.OnCreate(test.resource, create, kopf.ID("fn"))
			}
			s.create("one")
			s.answers("", test.facts, s.explained("one"))
			options := kopf.Options{Registry: s.Registry, Config: cluster.Config()}
			options.Settings.Scope.Namespaces = []string{s.namespace}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s.Expect(kopf.Run(ctx, options)).To(gomega.MatchError(gomega.ContainSubstring(test.refusal)))
			s.Expect(s.explain()).To(gomega.ContainSubstring(test.refusal))
		})
	}
}

// A handler of a field that does not exist is never called, and nothing but the schema shows it.
func TestAFieldThatDoesNotExistIsExplained(t *testing.T) {
	s := newScene(t)
	pruned := kopf.Resource("kopf.dev", "v1", "kopfpruneds")
	s.OnUpdate(pruned, create, kopf.ID("fn"), kopf.Field("statsu.known"))
	s.OnUpdate(pruned, create, kopf.ID("other"), kopf.Field("status.known"))
	handlers, err := s.Declarations().Handlers(nil)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	c, err := inspect.Connect(t.Context(), cluster.Config(), inspect.Program{Handlers: handlers, Settings: s.settings})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfPruned", s.namespace, "one", nil))).To(gomega.Succeed())
	explained, err := c.Explain(t.Context(), inspect.Target{Kind: "kopfpruned", Namespace: s.namespace, Name: "one"})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	planned, err := c.NewPlan(t.Context(), s.namespace)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	note := gomega.MatchRegexp(`^A handler is for a field that does not exist: .*table_conditions_test.go:\d+: the update handler "fn/statsu.known": the objects of kopfpruneds.v1.kopf.dev have no field "statsu.known": did you mean "status.known"\?$`)
	s.Expect(explained.Notes).To(gomega.ContainElement(note))
	s.Expect(planned.Notes).To(gomega.ContainElement(note))
}

// A person who may not read the definition does not know whether the operator starts.
func TestAnUnreadableDefinitionIsNotDecidable(t *testing.T) {
	s := newScene(t)
	s.Conditions(examples)
	s.OnCreate(examples, create, kopf.ID("fn"))
	s.create("one")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"kopf.dev"}, Resources: []string{"kopfexamples"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: s.namespace}},
	}
	s.Expect(cluster.Client().Create(t.Context(), role)).To(gomega.Succeed())
	s.Expect(cluster.Client().Create(t.Context(), binding)).To(gomega.Succeed())
	config := cluster.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: s.namespace, Groups: []string{"system:authenticated"}}
	handlers, err := s.Declarations().Handlers(nil)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	c, err := inspect.Connect(t.Context(), config, inspect.Program{Handlers: handlers, Settings: s.settings})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	// The authorizer learns of the role soon.
	s.answers("", []string{"create", "fn (create): due"}, func() (*inspect.Explanation, error) {
		return c.Explain(t.Context(), inspect.Target{Kind: "kopfexample", Namespace: s.namespace, Name: "one"})
	})
}

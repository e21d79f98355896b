package conditions

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// unchecked makes the operator one that may not read definitions, and the object one of a kind of
// the examples.
func (s *scene) unchecked(kind, plural string) {
	s.t.Helper()
	testenv.Strike(s.config).Begin(testenv.Answer(http.StatusForbidden, "Forbidden", 0), func(r testenv.Request) bool {
		return r.Resource == "customresourcedefinitions"
	})
	selector := kopf.Resource("kopf.dev", "v1", plural)
	s.Registry = kopf.NewRegistry()
	s.Registry.Conditions(selector)
	s.object = testenv.NewObject(kind, s.object.GetNamespace(), "one", map[string]any{"field": "x"})
	fn := s.waiting("fn")
	s.OnCreate(selector, fn, kopf.ID("fn"))
	s.OnUpdate(selector, fn, kopf.ID("fn"))
}

// Each write of the conditions would be another generation.
func TestAStatusSubresourceIsNeededWithoutPermissions(t *testing.T) {
	s := newScene(t)
	s.unchecked("KopfNoStatus", "kopfnostatuses")
	options := kopf.Options{Registry: s.Registry, Config: s.config}
	options.Settings.Scope.Namespaces = []string{s.object.GetNamespace()}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s.Expect(kopf.Run(ctx, options)).To(gomega.MatchError(gomega.ContainSubstring("has no status subresource: add")))
}

// The object has no conditions, so kubectl does not take it for ready. The handler has succeeded
// nevertheless, and the event says why that is not visible.
func TestConditionsThatArePruned(t *testing.T) {
	s := newScene(t)
	s.unchecked("KopfPruned", "kopfpruneds")
	s.begin()
	s.reply("fn", errLater)
	s.reply("fn", nil)
	s.Eventually(cluster.Current(s.object)).Should(testenv.HaveAnnotation("kopf.zalando.org/last-handled-configuration", gomega.Not(gomega.BeEmpty())))
	s.Eventually(cluster.Events(s.current())).Should(gomega.ContainElement(gomega.HavePrefix("Warning ConditionsRefused: ")))
	s.Expect(judge(s.current()).ready).To(gomega.BeFalse())
	s.askKubectl(verdict{ready: false})
	s.Eventually(cluster.AtRest(s.requests)).Should(gomega.BeTrue())
	s.requests.Reset()

	s.patch(`{"spec":{"field":"y"}}`)
	s.reply("fn", nil)
	s.Eventually(cluster.Current(s.object)).Should(testenv.HaveAnnotation("kopf.zalando.org/last-handled-configuration", gomega.ContainSubstring(`"y"`)))
	s.Eventually(cluster.AtRest(s.requests)).Should(gomega.BeTrue())
	s.Expect(s.requests.Snapshot().Writes("kopfpruneds")).To(gomega.Equal(1), s.logs.String) // it is not tried again
}

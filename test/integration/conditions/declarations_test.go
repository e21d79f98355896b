package conditions

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// An operator does not start if the conditions of a resource would be lost.
func TestResourcesThatCannotHaveConditions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		selector kopf.Selector
		declare  func(r *kopf.Registry, sel kopf.Selector)
		want     string
	}{
		"no status subresource":  {kopf.Resource("kopf.dev", "v1", "kopfnostatuses"), nil, "has no status subresource: add"},
		"fields that are pruned": {kopf.Resource("kopf.dev", "v1", "kopfpruneds"), nil, "does not have the fields status.observedGeneration and status.conditions, so they would be lost: "},
		"no custom resource":     {kopf.Resource("v1", "configmaps"), nil, "is not a custom resource"},
		"no handlers": {widgets, func(r *kopf.Registry, sel kopf.Selector) {
			r.OnEvent(sel, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("event"))
		}, "has no handlers of changes, daemons, or timers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, r := gomega.NewWithT(t), kopf.NewRegistry()
			if test.declare == nil {
				r.OnCreate(test.selector, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("fn"))
			} else {
				test.declare(r, test.selector)
			}
			r.Conditions(test.selector)
			options := kopf.Options{Registry: r, Config: cluster.Config()}
			options.Settings.Scope.Namespaces = []string{cluster.Namespace(t)}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := kopf.Run(ctx, options)
			g.Expect(err).To(gomega.MatchError(gomega.And(gomega.ContainSubstring(test.want), gomega.ContainSubstring("declarations_test.go:"))))
		})
	}
}

func TestConditionsNeedASelectorThatIsValid(t *testing.T) {
	r := kopf.NewRegistry()
	r.Conditions(kopf.Selector{})
	_, err := kopf.NewOperator(kopf.Options{Registry: r})
	if err == nil || !strings.Contains(err.Error(), "it has no resource") {
		t.Errorf("got %v", err)
	}
}

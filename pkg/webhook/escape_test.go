package webhook_test

import (
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
)

// A label filter looks at the new object; a predicate can look at the old one.
func TestUpdateThatRemovesTheLabel(t *testing.T) {
	locked := example(nil)
	free := m{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": m{"name": "one", "namespace": "ns"}}
	update := review(free, m{"operation": "UPDATE", "oldObject": locked})
	reject := failing(handler.Reject("locked", 423))
	tests := map[string]struct {
		filter  handler.AdmissionOption
		allowed bool
	}{
		"bypasses a label filter": {handler.Labels(map[string]handler.Matcher{"a": handler.Present()}), true},
		"does not bypass a predicate": {handlertest.When(func(a *handler.Call) bool {
			return a.Transition().Old.View().Has("metadata", "labels", "a")
		}), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := &handlers{t: t}
			h.validate("check", reject, test.filter)
			if got := ask(t, h.serve(), "/check", update); got.Allowed != test.allowed {
				t.Errorf("got %+v", got)
			}
		})
	}
}

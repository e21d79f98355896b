package webhook_test

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/model/handler"
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
		"does not bypass a predicate": {handler.When(func(a handler.Arguments) bool {
			return a.(*handler.Admission).Old().View().Has("metadata", "labels", "a")
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

package webhook_test

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// Filters of labels look at what is to be stored; a predicate can look at what is.
func TestAnUpdateThatRemovesTheLabel(t *testing.T) {
	locked := example(nil)
	free := m{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": m{"name": "one", "namespace": "ns"}}
	update := review(free, m{"operation": "UPDATE", "oldObject": locked})
	reject := failing(handler.Reject("locked", 423))
	tests := map[string]struct {
		filter  handler.AdmissionOption
		allowed bool
	}{
		"escapes a filter of labels": {handler.Labels(map[string]handler.Matcher{"a": handler.Present()}), true},
		"does not escape a predicate": {handler.When(func(a handler.Arguments) bool {
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

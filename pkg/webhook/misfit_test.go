package webhook_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/internal/handler"
)

func TestObjectsThatDoNotFitTheTypeOfAHandler(t *testing.T) {
	broken, fine := example(m{"hostNetwork": "yes"}), example(m{"hostNetwork": true})
	labeled := example(m{"hostNetwork": "yes"})
	labeled["metadata"].(m)["labels"] = m{"c": "d"}
	updated := m{"operation": "UPDATE", "oldObject": broken}
	misfit := func(_ context.Context, a *handler.Call) error {
		return handler.DecodeObject(a.Body().Raw(), &corev1.Pod{})
	}
	tests := map[string]struct {
		validate, mutate func(context.Context, *handler.Call) error
		review           m
		allowed          bool
	}{
		"a validation":                        {misfit, nil, review(broken), false},
		"a validation of a deletion":          {misfit, nil, review(nil, m{"operation": "DELETE", "oldObject": broken}), false},
		"a validation of another change":      {misfit, nil, review(example(m{"hostNetwork": "no"}), updated), false},
		"a validation of a correction":        {misfit, nil, review(fine, updated), true},
		"a validation of a change of labels":  {misfit, nil, review(labeled, updated), true},
		"a mutation":                          {nil, misfit, review(broken), true},
		"a mutation and another validation":   {admit, misfit, review(broken), true},
		"a mutation and a validation with it": {misfit, misfit, review(broken), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := &handlers{t: t}
			if test.validate != nil {
				h.validate("check", test.validate)
			}
			if test.mutate != nil {
				h.mutate("change", test.mutate)
			}
			got := ask(t, h.serve(), "/", test.review)
			if got.Allowed != test.allowed || got.Patch != nil {
				t.Fatalf("got %+v", got)
			}
			if !got.Allowed && (got.Result.Code != 422 || !strings.Contains(got.Result.Message, "does not fit the Go type *v1.Pod in spec.hostNetwork")) {
				t.Errorf("got %+v", got.Result)
			}
		})
	}
}

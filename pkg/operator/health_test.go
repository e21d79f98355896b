package operator

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/health"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// An operator is not ready before the API servers can ask its admission handlers.
func TestTheHealthOfAdmissions(t *testing.T) {
	o := &operator{parts: &parts{engine: reconcile.New(reconcile.Config{})}}
	if _, is := o.visible().(health.AdmissionOperator); is {
		t.Error("there are no admission handlers")
	}
	o.admissions = &admissions{reachable: make(chan struct{})}
	seen, is := o.visible().(health.AdmissionOperator)
	if !is || seen.AdmissionProblem() == "" {
		t.Error("nobody knows of the admission handlers")
	}
	close(o.admissions.reachable)
	if problem := seen.AdmissionProblem(); problem != "" {
		t.Errorf("got %q", problem)
	}
}

package operator

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/health"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// An operator is not ready before the API servers can call its admission handlers.
func TestHealthDependsOnAdmission(t *testing.T) {
	engine := reconcile.New(reconcile.Config{})
	if _, is := healthOf(engine, nil).(health.AdmissionOperator); is {
		t.Error("there are no admission handlers")
	}
	a := &admission{server: &admissionServer{published: make(chan struct{})}}
	seen, is := healthOf(engine, a).(health.AdmissionOperator)
	if !is || seen.AdmissionProblem() == "" {
		t.Error("the cluster does not know the server yet")
	}
	close(a.server.published)
	if problem := seen.AdmissionProblem(); problem != "" {
		t.Errorf("got %q", problem)
	}
}

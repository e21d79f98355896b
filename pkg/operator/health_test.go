package operator

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/health"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// An operator is not ready before the API servers can call its admission handlers.
func TestHealthDependsOnAdmission(t *testing.T) {
	engine := reconcile.New(reconcile.Config{})
	if _, is := (&replica{engine: engine}).health().(health.AdmissionOperator); is {
		t.Error("there are no admission handlers")
	}
	a := &admission{server: &admissionServer{published: make(chan struct{})}}
	seen, is := (&replica{engine: engine, admission: a}).health().(health.AdmissionOperator)
	if !is || seen.AdmissionProblem() == "" {
		t.Error("the cluster does not know the server yet")
	}
	close(a.server.published)
	if problem := seen.AdmissionProblem(); problem != "" {
		t.Errorf("got %q", problem)
	}
	a.stopping = make(chan struct{})
	close(a.stopping)
	if problem := seen.AdmissionProblem(); problem != "the operator is stopping" {
		t.Errorf("got %q", problem)
	}
}

// Whoever may still send a review gets an answer, and is told not to use the connection again.
func TestReviewsGoOnForAWhile(t *testing.T) {
	tests := map[string]struct {
		stays, persistent, published bool
		delay, want                  time.Duration
	}{
		"the webhooks stay":        {true, false, true, 5 * time.Second, 5 * time.Second},
		"a webhook is persistent":  {false, true, true, 5 * time.Second, 5 * time.Second},
		"the webhooks are removed": {false, false, true, 5 * time.Second, 0},
		"nothing was published":    {true, false, false, 5 * time.Second, 0},
		"no delay is wanted":       {true, false, true, -1, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &admission{
					handlers: registry.Handlers{{Webhook: handler.Webhook{Persistent: test.persistent}}}, logger: logr.Discard(),
					server: &admissionServer{published: make(chan struct{})},
					stays:  test.stays, delay: test.delay, stopping: make(chan struct{}), unneeded: make(chan struct{}),
				}
				if test.published {
					close(a.server.published)
				}
				reviews := a.closing(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				closes := func() bool {
					response := httptest.NewRecorder()
					reviews.ServeHTTP(response, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
					return response.Header().Get("Connection") == "close"
				}
				ctx, cancel := context.WithCancel(t.Context())
				a.stopWith(ctx)
				before := closes()
				cancel()
				synctest.Wait()
				began := time.Now()
				a.linger()
				if took := time.Since(began); took != test.want || before || !closes() {
					t.Errorf("got %s, connections are closed: %t and %t", took, before, closes())
				}
			})
		})
	}
}

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
)

// In storms with reviews, replicas review what others write: they mark each object with its state, and reject a value.
// While replicas die, stop, and lose their lease, and at least one serves, no request is admitted without a review, and
// none fails.

// markKey is the annotation with the reviewed state, and forbidden the value that is rejected.
const (
	markKey   = "example.com/reviewed"
	forbidden = int64(99)
)

// reviewHost is the host of the webhooks in virtual time.
const reviewHost = "reviews.example.com"

// publication is how long an API server takes to learn about webhooks.
const publication = time.Second

// service reaches the replicas that serve, as a Service of Kubernetes does. It admits what no replica reviews.
type service struct {
	address   registrationv1.WebhookClientConfig
	mu        sync.Mutex
	endpoints []endpoint
	requests  int
	// published is when the webhooks were in place first, and unserved when a request was last admitted without a review.
	published, unserved time.Time
}

type endpoint struct {
	of      *stormOperator
	handler http.Handler
	running *sync.WaitGroup // requests
}

var _ http.Handler = (*service)(nil)

// ServeHTTP passes a request on to a replica, in turn.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if next := s.next(); next != nil {
		defer next.running.Done()
		next.handler.ServeHTTP(w, r)
		return
	}
	admit(w, r)
}

// next returns the next replica that is ready, with one more request, or nil.
func (s *service) next() *endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	ready := slices.DeleteFunc(slices.Clone(s.endpoints), func(e endpoint) bool { return !e.of.isReady() })
	if len(ready) == 0 {
		s.unserved = time.Now()
		return nil
	}
	s.requests++
	next := ready[s.requests%len(ready)]
	next.running.Add(1)
	return &next
}

// isReady reports whether a probe would find an operator ready.
func (o *stormOperator) isReady() bool {
	select {
	case <-o.started:
		return !o.dead.Load() && o.process.State().Ready
	default:
		return false
	}
}

// admit answers a review.
func admit(w http.ResponseWriter, r *http.Request) {
	review := admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "this is no review", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// RoundTrip answers a request of the API server in memory.
func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	result := answer.Result()
	content, err := io.ReadAll(result.Body)
	result.Body = io.NopCloser(bytes.NewReader(content))
	return result, err
}

// listen makes the service reachable for a real API server.
func (s *storm) listen() {
	server := httptest.NewTLSServer(s.service)
	s.t.Cleanup(server.Close)
	s.service.address = registrationv1.WebhookClientConfig{
		URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
}

// serve makes an operator an endpoint of the service.
func (o *stormOperator) serve(ctx context.Context, e settings.AdmissionEndpoint) error {
	s, running := o.storm.service, &sync.WaitGroup{}
	s.mu.Lock()
	s.endpoints = append(s.endpoints, endpoint{o, e.Handler, running})
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.endpoints = slices.DeleteFunc(s.endpoints, func(e endpoint) bool { return e.of == o })
		s.mu.Unlock()
		running.Wait()
	}()
	if err := e.Publish(ctx, s.address); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// review declares the handlers of reviews.
func (o *stormOperator) review(r *kopf.Registry, kex kopf.Selector) {
	writes := kopf.Operations(admissionv1.Create, admissionv1.Update)
	r.OnMutate(kex, func(_ context.Context, a *kopf.Admission) error {
		a.Patch().Merge(map[string]any{"metadata": map[string]any{"annotations": map[string]any{markKey: markOf(a.Body().Raw())}}})
		return nil
	}, kopf.ID("mark"), writes)
	r.OnValidate(kex, func(_ context.Context, a *kopf.Admission) error {
		if value, _ := a.Body().Spec().Int64("a"); value == forbidden {
			return kopf.Reject("this value is forbidden", http.StatusForbidden)
		}
		return nil
	}, kopf.ID("check"), writes)
}

// markOf returns the mark of an object.
func markOf(obj map[string]any) string {
	a, _, _ := unstructured.NestedInt64(obj, "spec", "a")
	b, _, _ := unstructured.NestedInt64(obj, "spec", "b")
	return fmt.Sprintf("%d, %d", a, b)
}

// areReviewed reports whether all requests since the given time must have been reviewed.
func (s *storm) areReviewed(since time.Time) bool {
	if !s.reviews {
		return false
	}
	r := s.service
	r.mu.Lock()
	published, unserved := r.published, r.unserved
	r.mu.Unlock()
	if published.IsZero() && s.hasWebhooks() {
		r.mu.Lock()
		r.published = time.Now()
		r.mu.Unlock()
	}
	return !published.IsZero() && published.Add(publication).Before(since) && unserved.Before(since)
}

// hasWebhooks reports whether a leader has written the webhooks.
func (s *storm) hasWebhooks() bool {
	key := client.ObjectKey{Name: s.namespace + ".example.com"}
	mutating, validating := &registrationv1.MutatingWebhookConfiguration{}, &registrationv1.ValidatingWebhookConfiguration{}
	err := errors.Join(s.cluster.Client().Get(context.Background(), key, mutating), s.cluster.Client().Get(context.Background(), key, validating))
	return err == nil && len(mutating.Webhooks) > 0 && len(validating.Webhooks) > 0
}

// judgeReview checks that an object that others have written was reviewed. The subject is locked.
func (s *subject) judgeReview(obj *unstructured.Unstructured) {
	if !s.storm.areReviewed(time.Now().Add(-publication)) {
		return
	}
	if mark := obj.GetAnnotations()[markKey]; mark != markOf(obj.Object) {
		s.breach("version %s was admitted without a review: it has the mark %q instead of %q", obj.GetResourceVersion(), mark, markOf(obj.Object))
	}
}

// tryForbidden makes another client try to write what is rejected. The subject is locked.
func (s *subject) tryForbidden(obj *unstructured.Unstructured) {
	began := time.Now()
	if !s.storm.areReviewed(began) {
		return
	}
	obj = obj.DeepCopy()
	_ = unstructured.SetNestedField(obj.Object, forbidden, "spec", "a")
	err := s.storm.cluster.Client().Update(context.Background(), obj, client.DryRunAll)
	if err == nil && s.storm.areReviewed(began) {
		s.breach("a value that is forbidden was admitted")
	}
	s.note("another client has tried a forbidden value: %v", err)
}

// reviewed returns the settings of operators that review.
func (o *stormOperator) reviewed(a *settings.Admission) {
	a.Server, a.Managed, a.ShutdownDelay = settings.AdmissionServerFunc(o.serve), o.storm.namespace+".example.com", 200*time.Millisecond
}

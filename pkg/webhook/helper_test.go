package webhook_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	evanphx "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/webhook"
)

type m = map[string]any

var (
	kex      = selector.New("kopf.dev", "v1", "kopfexamples")
	resource = selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Namespaced: true, Preferred: true}
)

// handlers collects the declarations of a test.
type handlers struct {
	t   testing.TB
	all registry.Handlers
}

func (h *handlers) add(d *handler.Declaration, err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
	h.all = append(h.all, d)
}

func (h *handlers) validate(id string, fn func(context.Context, *handler.Call) error, options ...handler.AdmissionOption) {
	h.t.Helper()
	h.add(handler.Validate(kex, handlertest.Function(fn), append(options, handler.ID(id))...))
}

func (h *handlers) mutate(id string, fn func(context.Context, *handler.Call) error, options ...handler.AdmissionOption) {
	h.t.Helper()
	h.add(handler.Mutate(kex, handlertest.Function(fn), append(options, handler.ID(id))...))
}

// serve returns the webhook of the handlers.
func (h *handlers) serve(adjust ...func(*webhook.Options)) http.Handler {
	options := webhook.Options{Handlers: h.all, Resources: findResource}
	for _, change := range adjust {
		change(&options)
	}
	return webhook.New(options)
}

func findResource(gvr schema.GroupVersionResource) (selector.Resource, bool) {
	return resource, gvr == resource.GVR()
}

// example returns an object as the API server sends it.
func example(spec m) m {
	return m{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": m{"name": "one", "namespace": "ns", "uid": "u-1", "labels": m{"a": "b"}}, "spec": spec,
	}
}

// review returns the review of a creation of the object, with changes to the request.
func review(object m, changes ...m) m {
	request := m{
		"uid": "r-1", "operation": "CREATE", "name": "one", "namespace": "ns",
		"kind":     m{"group": "kopf.dev", "version": "v1", "kind": "KopfExample"},
		"resource": m{"group": "kopf.dev", "version": "v1", "resource": "kopfexamples"},
		"userInfo": m{"username": "alice", "groups": []any{"people"}}, "object": object,
	}
	for _, change := range changes {
		for key, value := range change {
			request[key] = value
		}
	}
	return m{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
}

// post sends a body and returns the answer.
func post(t testing.TB, to http.Handler, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	recorder := httptest.NewRecorder()
	to.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
	return recorder
}

// ask sends a review and returns the response.
func ask(t testing.TB, to http.Handler, path string, sent any) *admissionv1.AdmissionResponse {
	t.Helper()
	answer := post(t, to, path, encode(t, sent))
	text := answer.Body.Bytes()
	if answer.Code != http.StatusOK {
		t.Fatalf("status %d: %s", answer.Code, text)
	}
	var reviewed admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &reviewed); err != nil || reviewed.Response == nil || reviewed.Response.UID != "r-1" ||
		reviewed.Kind != "AdmissionReview" || reviewed.APIVersion != "admission.k8s.io/v1" {
		t.Fatalf("got %s, %v", text, err)
	}
	return reviewed.Response
}

// patched returns the object with the patch of a response.
func patched(t testing.TB, object m, response *admissionv1.AdmissionResponse) m {
	t.Helper()
	if response.Patch == nil {
		return object
	}
	operations, err := evanphx.DecodePatch(response.Patch)
	if err != nil || *response.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("%s: %v", response.Patch, err)
	}
	text, err := operations.Apply([]byte(encode(t, object)))
	if err != nil {
		t.Fatalf("%s: %v", response.Patch, err)
	}
	var changed m
	if err := json.Unmarshal(text, &changed); err != nil {
		t.Fatal(err)
	}
	return changed
}

func encode(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func admit(context.Context, *handler.Call) error { return nil }

// failing returns a handler that returns the error.
func failing(err error) func(context.Context, *handler.Call) error {
	return func(context.Context, *handler.Call) error { return err }
}

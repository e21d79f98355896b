package webhook_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/webhook"
)

func TestInvalidRequestsAreExplained(t *testing.T) {
	valid := encode(t, review(example(nil)))
	with := func(changes m) string { return encode(t, review(example(nil), changes)) }
	tests := map[string]struct {
		path, body string
		status     int
		says       string
	}{
		"no body":                        {"/a", "", 400, "has no body"},
		"not JSON":                       {"/a", "uid=1", 400, "not an AdmissionReview as JSON"},
		"truncated JSON":                 {"/a", valid[:len(valid)/2], 400, "not an AdmissionReview as JSON"},
		"trailing data":                  {"/a", valid + "{}", 400, "not an AdmissionReview as JSON"},
		"null":                           {"/a", "null", 400, `not "" of ""`},
		"a list":                         {"/a", "[]", 400, "not an AdmissionReview as JSON"},
		"deep nesting":                   {"/a", strings.Repeat(`{"request":`, 20_000), 400, "not an AdmissionReview"},
		"another kind":                   {"/a", `{"apiVersion": "v1", "kind": "Pod"}`, 400, `not "Pod" of "v1"`},
		"another group":                  {"/a", `{"apiVersion": "kopf.dev/v1", "kind": "AdmissionReview"}`, 400, `of "kopf.dev/v1"`},
		"no request":                     {"/a", `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}`, 400, "has no request"},
		"a request of the wrong type":    {"/a", `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": 1}`, 400, "request"},
		"no uid":                         {"/a", with(m{"uid": ""}), 400, "has no uid"},
		"no resource":                    {"/a", with(m{"resource": nil}), 400, "does not name the resource"},
		"an unknown resource":            {"/a", with(m{"resource": m{"version": "v1", "resource": "pods"}}), 404, "does not know the resource /v1, Resource=pods"},
		"no operation":                   {"/a", with(m{"operation": ""}), 400, `the operation "" does not exist`},
		"an unknown operation":           {"/a", with(m{"operation": "PATCH"}), 400, `the operation "PATCH" does not exist`},
		"no object":                      {"/a", with(m{"object": nil}), 400, "neither an object nor an oldObject"},
		"an object that is a string":     {"/a", with(m{"object": "x"}), 400, "the object of the request"},
		"an old object that is a string": {"/a", with(m{"oldObject": "x"}), 400, "the oldObject of the request"},
		"an unknown path":                {"/b", valid, 404, `no admission handler with the id "/b"`},
		"a body that is too large":       {"/a", strings.Repeat(" ", webhook.MaxBody) + valid, 413, "larger than 7340032 bytes"},
	}
	h := &handlers{t: t}
	h.validate("a", admit)
	w := h.serve()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answer := post(t, w, test.path, test.body)
			if text := answer.Body.String(); answer.Code != test.status || !strings.Contains(text, test.says) {
				t.Errorf("status %d: %s", answer.Code, text)
			}
		})
	}
}

func TestBodyOfUnknownLengthIsLimited(t *testing.T) {
	h := &handlers{t: t}
	h.validate("a", admit)
	body := io.MultiReader(strings.NewReader(strings.Repeat(" ", webhook.MaxBody+1)))
	recorder := httptest.NewRecorder()
	h.serve().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", body))
	if recorder.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d %s", recorder.Code, recorder.Body)
	}
}

func TestReviewsAreSentWithPOST(t *testing.T) {
	recorder := httptest.NewRecorder()
	(&handlers{t: t}).serve().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if recorder.Code != http.StatusMethodNotAllowed || recorder.Header().Get("Allow") != http.MethodPost {
		t.Errorf("got %d, %v", recorder.Code, recorder.Header())
	}
}

func TestConnectNeedsNoObject(t *testing.T) {
	h := &handlers{t: t}
	h.validate("a", func(_ context.Context, a *handler.Call) error {
		return handler.Reject(a.Namespace()+"/"+a.Name()+" "+string(a.Reason()), 403)
	})
	got := ask(t, h.serve(), "/a", review(nil, m{"operation": "CONNECT"}))
	if got.Allowed || got.Result.Message != "ns/one " {
		t.Errorf("got %+v", got.Result)
	}
}

func TestNoHandlerIsCalledBeforeTheOperatorIsReady(t *testing.T) {
	h := &handlers{t: t}
	h.validate("a", failing(io.EOF))
	w := h.serve(func(o *webhook.Options) {
		o.CheckReady = func(context.Context) error { return errors.New("a moment") }
	})
	answer := post(t, w, "/a", encode(t, review(example(nil))))
	text := answer.Body.String()
	if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" || !strings.Contains(text, "a moment") {
		t.Errorf("got %d %s", answer.Code, text)
	}
}

func TestHandlersGetTheTimeoutOfTheAPIServer(t *testing.T) {
	tests := map[string]struct {
		query string
		took  time.Duration
	}{
		"missing":  {"", webhook.MaxTimeout},
		"given":    {"?timeout=10s", 10 * time.Second},
		"too long": {"?timeout=10h", webhook.MaxTimeout},
		"zero":     {"?timeout=0s", webhook.MaxTimeout},
		"invalid":  {"?timeout=x", webhook.MaxTimeout},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &handlers{t: t}
				h.validate("slow", func(ctx context.Context, _ *handler.Call) error { <-ctx.Done(); return ctx.Err() })
				h.validate("next", admit)
				began := time.Now()
				got := ask(t, h.serve(), "/"+test.query, review(example(nil)))
				if took := time.Since(began); got.Allowed || got.Result.Code != 500 || took != test.took ||
					!strings.Contains(got.Result.Message, "the handler slow did not answer in time") {
					t.Errorf("after %s: %+v", took, got.Result)
				}
			})
		})
	}
}

func TestHandlerIsCanceledWhenTheClientDisconnects(t *testing.T) {
	h := &handlers{t: t}
	called, canceled := make(chan struct{}), make(chan struct{})
	h.validate("slow", func(ctx context.Context, _ *handler.Call) error {
		close(called)
		<-ctx.Done()
		close(canceled)
		return ctx.Err()
	})
	server := httptest.NewServer(h.serve())
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/slow", strings.NewReader(encode(t, review(example(nil)))))
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-called; cancel() }()
	if answer, err := server.Client().Do(request); err == nil {
		_ = answer.Body.Close()
		t.Errorf("got %d", answer.StatusCode)
	}
	<-canceled
}

func TestSlowBodyIsLimitedByTheTimeout(t *testing.T) {
	h := &handlers{t: t}
	h.validate("a", admit)
	server := httptest.NewServer(h.serve())
	defer server.Close()
	body, end := io.Pipe()
	defer func() { _ = end.Close() }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/a?timeout=50ms", body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("got %d %s", answer.StatusCode, text)
	}
}

package kopftest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Requests selects requests of the operator and its handlers. An empty field means any.
type Requests struct {
	// Verb is the verb of Kubernetes, as in roles: get, list, watch, create, update, patch,
	// delete, or deletecollection.
	Verb string
	// Resource is the plural name, as in roles: "configmaps", or "claims/status" for the
	// subresource, which "claims" does not include.
	Resource string
	// Namespace and Name are those in the path of the request: a creation has no name.
	Namespace, Name string
}

// verbs are those of the requests for single objects, and for all.
var verbs = map[string][2]string{
	http.MethodGet: {"get", "list"}, http.MethodPost: {"create", "create"}, http.MethodPut: {"update", "update"},
	http.MethodPatch: {"patch", "patch"}, http.MethodDelete: {"delete", "deletecollection"},
}

// requestsOf returns what one request is.
func requestsOf(request *http.Request) Requests {
	namespace, parts := splitNamespace(objectPath(request.URL.Path))
	parts = append(slices.Clone(parts), "", "")
	one := Requests{Resource: parts[0], Namespace: namespace, Name: parts[1]}
	if parts[2] != "" {
		one.Resource += "/" + parts[2]
	}
	one.Verb = verbs[request.Method][1]
	if one.Name != "" {
		one.Verb = verbs[request.Method][0]
	}
	if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		one.Verb = "watch"
	}
	return one
}

// include reports whether one request is selected. Discovery is never.
func (r Requests) include(one Requests) bool {
	isAny := func(wanted, got string) bool { return wanted == "" || wanted == got }
	return one.Resource != "" && isAny(r.Verb, one.Verb) && isAny(r.Resource, one.Resource) &&
		isAny(r.Namespace, one.Namespace) && isAny(r.Name, one.Name)
}

// Failure is an arrangement of Harness.Fail. It is safe for concurrent use.
type Failure struct {
	requests Requests
	err      error

	mu    sync.Mutex
	left  int // negative without a limit
	count int
}

// Count returns how many requests have failed.
func (f *Failure) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// End lets the requests pass again.
func (f *Failure) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = 0
}

// take reports whether a request fails, and counts it.
func (f *Failure) take(one Requests) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 || !f.requests.include(one) {
		return false
	}
	f.left--
	f.count++
	return true
}

// Fail makes the next requests of the operator and its handlers fail, without changing anything:
// as many as the given times, or all until Failure.End if times is 0. The requests of the test
// itself are not affected. An error of k8s.io/apimachinery/pkg/api/errors is the answer of the
// API server; for any other error, the connection breaks:
//
//	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "one", errors.New("exceeded quota"))
//	h.Fail(kopftest.Requests{Verb: "create", Resource: "pods"}, 1, refused)
//
// Failures survive restarts of the operator. Several that select a request are used up in the
// order of the calls. Clients repeat a request by themselves if the answer suggests a delay, as
// that of apierrors.NewTooManyRequests does.
func (h *Harness) Fail(requests Requests, times int, err error) *Failure {
	h.t.Helper()
	if err == nil || times < 0 {
		h.t.Fatalf("kopftest: Fail needs an error, and a number of times that is not negative; got %v and %d", err, times)
	}
	made := &Failure{requests: requests, err: err, left: times}
	if times == 0 {
		made.left = -1
	}
	h.recording.add(func(r *recording) { r.failures = append(r.failures, made) })
	return made
}

// failureOf returns the failure of a request, or nil.
func (r *recording) failureOf(request *http.Request) *Failure {
	var failures []*Failure
	r.add(func(r *recording) { failures = r.failures })
	for _, one := range failures {
		if one.take(requestsOf(request)) {
			return one
		}
	}
	return nil
}

// respond fails a request: by the status of the error, if it has one.
func (f *Failure) respond(request *http.Request) (*http.Response, error) {
	var known apierrors.APIStatus
	if !errors.As(f.err, &known) {
		return nil, f.err
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	data, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		header.Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
	}
	return &http.Response{
		StatusCode: int(status.Code), Status: strings.TrimSpace(fmt.Sprintf("%d %s", status.Code, http.StatusText(int(status.Code)))),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: request,
		ContentLength: int64(len(data)), Body: io.NopCloser(bytes.NewReader(data)),
	}, nil
}

package window

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// What lasts, and what keeps the operator alive, does not wait.
func TestWhatWaits(t *testing.T) {
	const namespaced = "/api/v1/namespaces/ns"
	tests := []struct {
		method, url string
		waits       bool
		want        target
	}{
		{"GET", namespaced + "/pods", true, target{resource{"", "pods"}, listing, false}},
		{"GET", "/api/v1/pods?limit=500&watch=false", true, target{resource{"", "pods"}, listing, false}},
		{"GET", namespaced + "/pods/one", true, target{resource{"", "pods"}, getting, false}},
		{"POST", namespaced + "/pods", true, target{resource{"", "pods"}, creating, false}},
		{"PUT", namespaced + "/pods/one", true, target{resource{"", "pods"}, updating, false}},
		{"PATCH", namespaced + "/pods/one", true, target{resource{"", "pods"}, patching, false}},
		{"PATCH", namespaced + "/pods/one/status", true, target{resource{"", "pods"}, patching + ofSubresources, false}},
		{"DELETE", namespaced + "/pods/one", true, target{resource{"", "pods"}, deleting, false}},
		{"POST", namespaced + "/pods/one/eviction", true, target{resource{"", "pods"}, creating + ofSubresources, true}},
		{"PATCH", "/api/v1/namespaces/ns", true, target{resource{"", "namespaces"}, patching, false}},
		{"PATCH", "/api/v1/namespaces/ns/status", true, target{resource{"", "namespaces"}, patching + ofSubresources, false}},
		{"PATCH", "/apis/kopf.dev/v1/namespaces/ns/kopfexamples/one", true, target{resource{"kopf.dev", "kopfexamples"}, patching, false}},
		{"GET", "/k8s/clusters/c-1/apis/apps/v1/deployments", true, target{resource{"apps", "deployments"}, listing, false}},
		{"GET", "/apis", true, target{resource{}, listing, false}},
		{"GET", "/apis/apps/v1", true, target{resource{}, listing, false}},
		{"GET", "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/apis/apps/v1/deployments", true, target{resource{}, listing, false}},

		{"GET", "/api/v1/pods?watch=true", false, target{resource{"", "pods"}, listing, false}},
		{"GET", "/api/v1/pods?allowWatchBookmarks=true&watch=1", false, target{resource{"", "pods"}, listing, false}},
		{"GET", namespaced + "/pods/one/log?follow=true", false, target{}},
		{"POST", namespaced + "/pods/one/exec", false, target{}},
		{"POST", namespaced + "/pods/one/portforward", false, target{}},
		{"GET", namespaced + "/services/one/proxy/path", false, target{}},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/one", false, target{}},
		{"PATCH", "/apis/kopf.dev/v1/clusterkopfpeerings/default", false, target{}},
		{"PATCH", "/apis/zalando.org/v1/namespaces/ns/kopfpeerings/default", false, target{}},
	}
	for _, test := range tests {
		request, err := http.NewRequestWithContext(t.Context(), test.method, "http://example.com"+test.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		of, waits := targetOf(request)
		if waits != test.waits || waits && of != test.want {
			t.Errorf("%s %s: got %v, %+v", test.method, test.url, waits, of)
		}
	}
}

func TestHowAnswersAreJudged(t *testing.T) {
	timeout := fmt.Errorf("sending: %w", context.DeadlineExceeded)
	const long, short = 30 * time.Second, 10 * time.Millisecond
	tests := map[string]struct {
		of         target
		code       int // 0 without an answer
		retryAfter string
		err        error
		took       time.Duration
		want       outcome
	}{
		"a success":                        {target{verb: patching}, 200, "", nil, short, outcome{verb: patching, took: short, isTimed: true}},
		"a conflict":                       {target{verb: patching}, 409, "", nil, short, outcome{verb: patching, took: short, isTimed: true}},
		"a list":                           {target{verb: listing}, 200, "", nil, long, outcome{verb: listing, took: long}},
		"too many requests":                {target{}, 429, "1", nil, short, outcome{took: short, failure: Refused, pause: time.Second}},
		"too many requests without a time": {target{}, 429, "", nil, short, outcome{took: short, failure: Refused}},
		"a list that is refused":           {target{verb: listing}, 429, "1", nil, short, outcome{verb: listing, took: short, pause: time.Second}},
		"a budget of pods":                 {target{isEviction: true}, 429, "10", nil, short, outcome{took: short, pause: 10 * time.Second}},
		"unavailable, with a time":         {target{}, 503, "3", nil, short, outcome{took: short, failure: Unavailable, pause: 3 * time.Second}},
		"unavailable":                      {target{}, 503, "", nil, short, outcome{took: short}},
		"an internal error":                {target{}, 500, "", nil, short, outcome{took: short}},
		"a timeout of the server":          {target{}, 504, "1", nil, long, outcome{took: long, failure: TimedOut, pause: time.Second}},
		"a timeout of the client":          {target{}, 0, "", timeout, long, outcome{took: long, failure: TimedOut}},
		"a deadline that is very short":    {target{}, 0, "", timeout, short, outcome{took: short}},
		"a canceled request":               {target{}, 0, "", context.Canceled, long, outcome{took: long}},
		"a refused connection":             {target{}, 0, "", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, short, outcome{took: short}},
		"a panic":                          {target{}, 0, "", nil, short, outcome{took: short}},
	}
	for name, test := range tests {
		var response *http.Response
		if test.code != 0 {
			response = &http.Response{StatusCode: test.code, Header: http.Header{}, Body: http.NoBody}
			response.Header.Set("Retry-After", test.retryAfter)
		}
		if got := outcomeOf(test.of, response, test.err, test.took); got != test.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// A full window holds neither watches nor leases.
func TestAFullWindowHoldsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(1, func(*http.Request) (int, time.Duration) { return http.StatusOK, time.Hour })
		done := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := n.request(ctx, http.MethodPatch, thing(0))
			done <- err
		}()
		synctest.Wait()
		for range 3 {
			go func() {
				_, err := n.request(ctx, http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/ns/leases/one")
				done <- err
			}()
		}
		synctest.Wait()
		if len(n.sent) != 4 {
			t.Errorf("got %v", n.sent)
		}
		cancel()
		for range 4 {
			if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, ErrNotSent) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestWrappedTransportsAreFound(t *testing.T) {
	next := answering{}
	wrapped, ok := New(1).Wrap(next).(interface{ WrappedRoundTripper() http.RoundTripper })
	if !ok || wrapped.WrappedRoundTripper() != next {
		t.Error("the transport below is hidden")
	}
}

package main

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopftest"
)

// requests counts the requests of an operator by method and path, except for watches and for
// looking for new resources.
type requests struct {
	mu    sync.Mutex
	count map[string]int
}

// countRequests counts the requests with a configuration from now on.
func countRequests(config *rest.Config) *requests {
	r := &requests{count: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			r.add(request)
			return next.RoundTrip(request)
		})
	})
	return r
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (r *requests) add(request *http.Request) {
	if path := request.URL.Path; request.URL.Query().Get("watch") == "true" || path == "/api" || path == "/apis" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[request.Method+" "+request.URL.Path]++
}

// take returns the numbers of requests since the last call.
func (r *requests) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := maps.Clone(r.count)
	clear(r.count)
	return taken
}

// readDefinition returns the definition of the handled resource.
func readDefinition(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(definitions, "kopfexamples.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return kopftest.Object(string(text))
}

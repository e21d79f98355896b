// Package health tests with a real API server what an operator reports to the kubelet and
// to Prometheus.
package health

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{CRDs: []string{testenv.ExampleCRDs, testenv.FixtureCRDs, "config/crd/kopf.dev"}})
}

var examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")

const resource = "kopfexamples.v1.kopf.dev"

func succeed(context.Context, *kopf.Change) error { return nil }

// answer is the response of an endpoint; a status of 0 means that there was none.
type answer struct {
	Status int
	Body   string
}

// asking returns a function that requests an endpoint.
func asking(address, path string) func() answer {
	return func() answer { return ask(http.DefaultClient, "http://"+address+path, "") }
}

func ask(client *http.Client, url, token string) answer {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return answer{Body: err.Error()}
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{Body: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(body)}
}

// says matches an answer.
func says(status int, parts ...string) gomega.OmegaMatcher {
	matchers := []gomega.OmegaMatcher{gomega.HaveField("Status", status)}
	for _, part := range parts {
		matchers = append(matchers, gomega.HaveField("Body", gomega.ContainSubstring(part)))
	}
	return gomega.And(matchers...)
}

// outage makes the lists and watches of the example resource fail for one
// configuration, and breaks the existing watches.
type outage struct {
	on atomic.Bool

	mu      sync.Mutex
	watches []io.Closer
}

func (o *outage) of(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return testenv.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodGet || !isCollection(request.URL.Path) {
				return next.RoundTrip(request)
			}
			if o.on.Load() {
				return nil, errors.New("the network is down: " + canary)
			}
			response, err := next.RoundTrip(request)
			if err == nil {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.watches = append(o.watches, response.Body)
			}
			return response, err
		})
	})
	return config
}

// begin starts the outage.
func (o *outage) begin() {
	o.on.Store(true)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, watch := range o.watches {
		_ = watch.Close()
	}
}

func isCollection(path string) bool {
	const end = "/kopfexamples"
	return len(path) > len(end) && path[len(path)-len(end):] == end
}

// canary is in objects and in errors, and must not appear elsewhere.
const canary = "s3cr3t-canary"

// background runs an operator until the test ends. The operator may never become ready.
func background(t *testing.T, options kopf.Options) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	options.Logger = testenv.Logger()
	go func() { done <- kopf.Run(ctx, options) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the operator failed: %v", err)
		}
	})
}

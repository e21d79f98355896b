package access_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/health/access"
)

// cluster knows two users, one of which may read the metrics. It counts its requests,
// and fails on demand.
type cluster struct {
	failing  atomic.Bool
	requests atomic.Int32
}

var users = map[string]string{"secret-of-ann": "ann", "secret-of-bob": "bob"}

func (c *cluster) ServeHTTP(into http.ResponseWriter, request *http.Request) {
	c.requests.Add(1)
	if c.failing.Load() {
		http.Error(into, "failing", http.StatusInternalServerError)
		return
	}
	into.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(request.URL.Path, "/tokenreviews") {
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(request.Body).Decode(&review)
		review.Status.User.Username = users[review.Spec.Token]
		review.Status.Authenticated = review.Status.User.Username != ""
		_ = json.NewEncoder(into).Encode(review)
		return
	}
	var review authorizationv1.SubjectAccessReview
	_ = json.NewDecoder(request.Body).Decode(&review)
	wanted := review.Spec.NonResourceAttributes
	review.Status.Allowed = review.Spec.User == "ann" && wanted.Path == "/metrics" && wanted.Verb == "get"
	_ = json.NewEncoder(into).Encode(review)
}

// newEndpoint returns an endpoint behind a filter.
func newEndpoint(t *testing.T, c *cluster, log logr.Logger) http.Handler {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	filter, err := access.New(config, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return filter.Wrap(log, http.HandlerFunc(func(into http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(into, "kopf_paused 0") }))
}

func request(endpoint http.Handler, method, path, authorization string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	recorder := httptest.NewRecorder()
	endpoint.ServeHTTP(recorder, request)
	return recorder
}

func TestClusterAuthorizesRequests(t *testing.T) {
	tests := map[string]struct {
		method, path, authorization string
		want                        int
	}{
		"permitted":               {"GET", "/metrics", "Bearer secret-of-ann", http.StatusOK},
		"lower-case scheme":       {"GET", "/metrics", "bearer secret-of-ann", http.StatusOK},
		"no header":               {"GET", "/metrics", "", http.StatusUnauthorized},
		"empty token":             {"GET", "/metrics", "Bearer ", http.StatusUnauthorized},
		"unknown token":           {"GET", "/metrics", "Bearer secret-of-eve", http.StatusUnauthorized},
		"basic authentication":    {"GET", "/metrics", "Basic secret-of-ann", http.StatusUnauthorized},
		"user without permission": {"GET", "/metrics", "Bearer secret-of-bob", http.StatusForbidden},
		"other path":              {"GET", "/other", "Bearer secret-of-ann", http.StatusForbidden},
		"other method":            {"POST", "/metrics", "Bearer secret-of-ann", http.StatusForbidden},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := request(newEndpoint(t, &cluster{}, logr.Discard()), test.method, test.path, test.authorization)
			if got.Code != test.want || (got.Body.String() == "kopf_paused 0") != (test.want == http.StatusOK) {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
		})
	}
}

func TestDecisionsAreCached(t *testing.T) {
	c := &cluster{}
	endpoint := newEndpoint(t, c, logr.Discard())
	for range 5 {
		request(endpoint, "GET", "/metrics", "Bearer secret-of-ann")
		request(endpoint, "GET", "/metrics", "Bearer secret-of-eve")
	}
	if requests := c.requests.Load(); requests != 3 {
		t.Errorf("got %d requests", requests)
	}
}

func TestRequestsFailWhileTheClusterDoes(t *testing.T) {
	c := &cluster{}
	var log strings.Builder
	endpoint := newEndpoint(t, c, funcr.New(func(_, line string) { log.WriteString(line) }, funcr.Options{}))
	c.failing.Store(true)
	got := request(endpoint, "GET", "/metrics", "Bearer secret-of-ann")
	if got.Code != http.StatusInternalServerError || !strings.Contains(log.String(), "tokenreviews") {
		t.Errorf("got %d %s, %s", got.Code, got.Body, log.String())
	}
	if text := log.String() + got.Body.String(); strings.Contains(text, "secret") {
		t.Errorf("got the token in %s", text)
	}
	c.failing.Store(false)
	if got := request(endpoint, "GET", "/metrics", "Bearer secret-of-ann"); got.Code != http.StatusOK {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

func TestGuessedTokensDoNotFillTheMemory(t *testing.T) {
	c := &cluster{}
	endpoint := newEndpoint(t, c, logr.Discard())
	for i := range 600 {
		if got := request(endpoint, "GET", "/metrics", fmt.Sprintf("Bearer guess-%d", i)); got.Code != http.StatusUnauthorized {
			t.Fatalf("got %d", got.Code)
		}
	}
	if got := request(endpoint, "GET", "/metrics", "Bearer secret-of-ann"); got.Code != http.StatusOK {
		t.Errorf("got %d", got.Code)
	}
}

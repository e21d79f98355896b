package permissions

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/cli/logformat"
	"github.com/kopf-go/kopf/pkg/settings"
)

type answering func(*http.Request) (*http.Response, error)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// send sends a request through the transport of the configuration, and gets an answer.
func send(t *testing.T, config *rest.Config, method, path string, status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://example.com"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := config.WrapTransport(answering(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}, nil
	})).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(response.Body); string(got) != body {
		t.Errorf("the answer has become %q", got)
	}
	_ = response.Body.Close()
}

// observe returns the observer of the requests of a connection.
func observe(t *testing.T, s settings.Settings, logger logr.Logger) (*rest.Config, *Observer) {
	t.Helper()
	config, requests := &rest.Config{}, NewRequests()
	requests.Wrap(config)
	send(t, config, http.MethodGet, "/api/v1/namespaces/early/pods", http.StatusForbidden, `{"message":"User \"x\" cannot list resource \"pods\" in"}`)
	o, err := New(requests, nil, nil, nil, logger)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(requests, nil, nil, nil, logger); err == nil || !strings.HasPrefix(err.Error(), "another operator observes") {
		t.Errorf("got %v", err)
	}
	o.Begin(s)
	return config, o
}

func TestMissingRulesAreErrorsThatAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	config, _ := observe(t, settings.Settings{}, logformat.New(&log, logformat.Options{Verbosity: logformat.Errors}))
	for range 2 {
		send(t, config, http.MethodGet, "/api/v1/namespaces/a/pods", http.StatusForbidden, `{"message":"User \"x\" cannot list resource \"pods\" in"}`)
		send(t, config, http.MethodPost, "/api/v1/namespaces/a/pods", http.StatusForbidden, `{"message":"exceeded quota"}`)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 1 || !strings.Contains(lines[0], "ERROR") || !strings.Contains(lines[0], "resources: [pods], verbs: [list]}") || !strings.Contains(lines[0], "a Role in the namespace a") {
		t.Errorf("got %q", lines)
	}
}

// What was learned is in the file while the operator runs, and the rest when it has ended.
func TestLearnedRolesAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "roles.yaml")
		config, o := observe(t, settings.Settings{Name: "mine", Permissions: settings.Permissions{LearnFile: file}}.WithDefaults(), logr.Discard())
		ended := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			defer close(ended)
			o.Run(ctx)
		}()
		read := func() string {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			}
			return string(text)
		}
		send(t, config, http.MethodGet, "/api/v1/pods", http.StatusOK, "")
		time.Sleep(interval + time.Second)
		if text := read(); !strings.HasPrefix(text, "# A LOWER BOUND") || !strings.Contains(text, "resources: [pods]\n    verbs: [list]") {
			t.Errorf("got %s", text)
		}
		send(t, config, http.MethodGet, "/api/v1/services/x", http.StatusOK, "")
		cancel()
		<-ended
		if text := read(); !strings.Contains(text, "resources: [services]\n    verbs: [get]") {
			t.Errorf("got %s", text)
		}
	})
}

// The leases of replicas and shards have a rule, which covers all requests about them.
func TestLeasesOfShardsAreDerivedAndNotLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "roles.yaml")
		s := settings.Settings{Name: "mine", Permissions: settings.Permissions{LearnFile: file}}
		s.Replicas.Shards = 16
		s.Replicas.LeaseNamespace = "operators"
		config, o := observe(t, s.WithDefaults(), logr.Discard())
		const leases = "/apis/coordination.k8s.io/v1/namespaces/operators/leases"
		send(t, config, http.MethodGet, leases+"?watch=true&labelSelector=kopf.dev%2Fring%3Dmine", http.StatusOK, "")
		send(t, config, http.MethodGet, leases+"?labelSelector=kopf.dev%2Fring%3Dmine", http.StatusOK, "")
		send(t, config, http.MethodPost, leases, http.StatusCreated, "")
		send(t, config, http.MethodGet, leases+"/mine", http.StatusOK, "")
		send(t, config, http.MethodPut, leases+"/mine-shard-3", http.StatusOK, "")
		send(t, config, http.MethodDelete, leases+"/mine-replica-0123456789abcdef", http.StatusOK, "")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		o.Run(ctx)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(text); strings.Count(got, "resources: [leases]") != 1 || !strings.Contains(got, "resources: [leases]\n    verbs: [get, list, watch, create, update, delete]\n") {
			t.Errorf("got %s", got)
		}
	})
}

package rbac_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/rbac"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Only a lack of permission is reported, once for each kind of request, and the answer stays.
func TestJournal(t *testing.T) {
	answers := map[string]string{
		"/api/v1/namespaces/a/pods":      `{"message":"pods is forbidden: User \"x\" cannot create resource \"pods\" in API group \"\" in the namespace \"a\""}`,
		"/api/v1/namespaces/a/secrets/x": `{"message":"secrets \"x\" is forbidden: User \"x\" cannot create resource \"secrets\" in API group"}`,
		"/api/v1/namespaces/b/pods":      `{"message":"pods \"x\" is forbidden: exceeded quota: q"}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := answers[r.URL.Path]; answer != "" {
			http.Error(w, answer, http.StatusForbidden)
		}
		if r.Method == http.MethodPatch {
			w.WriteHeader(http.StatusCreated)
		}
	}))
	defer server.Close()
	var missing []string
	journal := &rbac.Journal{Refused: func(p rbac.Permission) { missing = append(missing, p.Namespace+" "+rbac.Missing(p).Line()) }}
	journal.Learn()
	client := &http.Client{Transport: journal.Wrap(http.DefaultTransport)}
	send := func(method, path string) string {
		request, err := http.NewRequestWithContext(context.Background(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		var body strings.Builder
		_ = response.Write(&body)
		return body.String()
	}
	for range 2 {
		for path, answer := range answers {
			method := http.MethodPost
			if strings.HasSuffix(path, "/x") {
				method = http.MethodPatch // server-side apply
			}
			if got := send(method, path); !strings.Contains(got, answer) {
				t.Errorf("the answer is %q", got)
			}
		}
		send(http.MethodGet, "/api/v1/namespaces/a/services/one")
		send(http.MethodGet, "/api/v1/namespaces/a/services/two")
		send(http.MethodGet, "/api/v1/namespaces/a/secrets?watch=true&sendInitialEvents=true")
		send(http.MethodPatch, "/api/v1/namespaces/a/services/two")
	}
	slices.Sort(missing)
	if want := []string{`a - {apiGroups: [""], resources: [pods], verbs: [create]}`, `a - {apiGroups: [""], resources: [secrets], verbs: [create]}`}; !slices.Equal(missing, want) {
		t.Errorf("got %q", missing)
	}
	var used []string
	for _, p := range journal.Used() {
		used = append(used, strings.Join([]string{p.Namespace, p.Resource, p.Name, p.Verb}, " "))
	}
	if want := []string{"a secrets  list", "a secrets  watch", "a services one get", "a services two get", "a services  create", "a services two patch"}; !slices.Equal(used, want) {
		t.Errorf("got %+v", journal.Used())
	}
}

// What is derived for an object of a name is not learned for all objects.
func TestLearnedRolesKeepNames(t *testing.T) {
	derived, _ := rbac.Derive(rbac.Input{
		Handlers: registry.Handlers{declared(handler.OnCreate, "kopfexamples")}, Snapshot: present, Namespace: "system",
		Settings: settings.Settings{Name: "mine", Replicas: settings.Replicas{LeaderElection: true}},
	})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	journal := &rbac.Journal{}
	journal.Learn()
	requests := []string{
		"PATCH /apis/kopf.dev/v1/clusterkopfpeerings/default", "GET /apis/kopf.dev/v1/clusterkopfpeerings?fieldSelector=metadata.name%3Ddefault",
		"PUT /apis/coordination.k8s.io/v1/namespaces/system/leases/mine", "GET /apis/coordination.k8s.io/v1/namespaces/system/leases/other",
	}
	for i := range 100 {
		requests = append(requests, fmt.Sprintf("GET /api/v1/pods/pod-%d", i))
	}
	for _, request := range requests {
		method, path, _ := strings.Cut(request, " ")
		sent, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := journal.Wrap(http.DefaultTransport).RoundTrip(sent)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	if got := len(journal.Used()); got > 20 {
		t.Errorf("the journal has %d entries", got)
	}
	var added []string
	for _, role := range rbac.Add(derived, journal.Used(), "It was used.") {
		for _, rule := range role.Rules {
			if rule.Reason == "It was used." {
				added = append(added, rule.Line())
			}
		}
	}
	if want := []string{`- {apiGroups: [""], resources: [pods], verbs: [get]}`, "- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]}"}; !slices.Equal(added, want) {
		t.Errorf("got %q", added)
	}
}

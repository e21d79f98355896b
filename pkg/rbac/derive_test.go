package rbac_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/rbac"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

var all = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// present are the resources of a cluster.
var present = discovery.Snapshot{Resources: []selector.Resource{
	{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Namespaced: true, Preferred: true, Status: true, Subresources: []string{"status"}, Verbs: all},
	{Group: "kopf.dev", Version: "v1", Plural: "clusterkopfpeerings", Kind: "ClusterKopfPeering", Preferred: true, Verbs: all},
	{Group: "kopf.dev", Version: "v1", Plural: "kopfpeerings", Kind: "KopfPeering", Namespaced: true, Preferred: true, Verbs: all},
	{Version: "v1", Plural: "nodes", Kind: "Node", Preferred: true, Status: true, Verbs: all},
	{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true, Preferred: true, Status: true, Verbs: all},
	{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true, Preferred: true, Verbs: all},
}}

// declared returns a handler of a kind for the resources of a selector.
func declared(kind handler.Kind, parts ...string) *handler.Declaration {
	return &handler.Declaration{Kind: kind, ID: "fn", Selector: selector.New(parts...), DeclaredAt: "main.go:7"}
}

// derive returns the roles in one line per rule.
func derive(t *testing.T, in rbac.Input) (lines []string, problems []error) {
	t.Helper()
	in.Snapshot = present
	roles, problems := rbac.Derive(in)
	for _, role := range roles {
		for _, rule := range role.Rules {
			lines = append(lines, strings.TrimSpace(role.Namespace+" "+rule.Line()))
			if rule.Reason == "" || strings.Contains(rule.Line(), "*") {
				t.Errorf("the rule %s has no reason, or a wildcard", rule.Line())
			}
		}
	}
	return lines, problems
}

func TestDerive(t *testing.T) {
	quiet := settings.Settings{Peering: settings.Peering{Standalone: true}, Posting: settings.Posting{Disabled: true}, Scanning: settings.Scanning{Disabled: true}}
	with := func(adjust func(*settings.Settings)) settings.Settings {
		s := quiet
		adjust(&s)
		return s
	}
	create := registry.Handlers{declared(handler.OnCreate, "kopfexamples")}
	served := []string{
		"- {apiGroups: [kopf.dev], resources: [kopfexamples], verbs: [get, list, watch, patch]}",
		"- {apiGroups: [kopf.dev], resources: [kopfexamples/status], verbs: [patch]}",
	}
	events := `- {apiGroups: [""], resources: [events], verbs: [create, patch]}`
	in := func(namespace string, lines ...string) (all []string) {
		for _, line := range lines {
			all = append(all, namespace+" "+line)
		}
		return all
	}
	tests := map[string]struct {
		in   rbac.Input
		want []string
	}{
		"a handler": {rbac.Input{Handlers: create, Settings: quiet}, served},
		"with the defaults": {rbac.Input{Handlers: create}, append(slices.Clone(served), events,
			"- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list, watch]}",
			"- {apiGroups: [kopf.dev], resources: [clusterkopfpeerings], resourceNames: [default], verbs: [get, list, watch, patch]}")},
		"in a namespace": {
			rbac.Input{Handlers: create, Settings: settings.Settings{Scope: settings.Scope{Namespaces: []string{"a"}}}},
			in("a", append(slices.Clone(served), events, "- {apiGroups: [kopf.dev], resources: [kopfpeerings], resourceNames: [default], verbs: [get, list, watch, patch]}")...),
		},
		"in two namespaces": {
			rbac.Input{Handlers: create, Settings: with(func(s *settings.Settings) { s.Scope.Namespaces = []string{"a", "b"} })},
			append(in("a", served...), in("b", served...)...),
		},
		"objects of the cluster, in a namespace": {rbac.Input{Handlers: registry.Handlers{declared(handler.OnEvent, "nodes")}, Settings: with(func(s *settings.Settings) {
			s.Scope.Namespaces, s.Posting.Disabled = []string{"a"}, false
		})}, []string{
			`- {apiGroups: [""], resources: [nodes], verbs: [get, list, watch, patch]}`, `- {apiGroups: [""], resources: [nodes/status], verbs: [patch]}`, "default " + events,
		}},
		"a pattern": {
			rbac.Input{Handlers: create, Settings: with(func(s *settings.Settings) { s.Scope.Namespaces, s.Scanning.Disabled = []string{"a-*"}, false })},
			append(slices.Clone(served), `- {apiGroups: [""], resources: [namespaces], verbs: [list, watch]}`),
		},
		"an index": {
			rbac.Input{Handlers: registry.Handlers{declared(handler.OnIndex, "pods")}, Settings: quiet},
			[]string{`- {apiGroups: [""], resources: [pods], verbs: [list, watch]}`},
		},
		"needs": {
			rbac.Input{Settings: quiet, Needs: []registry.Need{{Selector: selector.New("pods"), Verbs: []string{"delete", "get", "exec/create"}, DeclaredAt: "main.go:9"}}},
			[]string{`- {apiGroups: [""], resources: [pods], verbs: [get, delete]}`, `- {apiGroups: [""], resources: [pods/exec], verbs: [create]}`},
		},
		"replicas": {rbac.Input{Settings: with(func(s *settings.Settings) { s.Name, s.Replicas.LeaderElection = "mine", true }), Namespace: "system"}, in("system",
			"- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}",
			"- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [mine], verbs: [get, update]}",
			`- {apiGroups: [""], resources: [events], verbs: [create]}`)},
		"admission": {rbac.Input{Settings: with(func(s *settings.Settings) {
			s.Admission.Managed, s.Admission.Server = "mine.example.com", servers.Server{Secret: "system/webhook"}
		})}, []string{
			"- {apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations, mutatingwebhookconfigurations], verbs: [create]}",
			"- {apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations, mutatingwebhookconfigurations], resourceNames: [mine.example.com], verbs: [get, patch]}",
			`system - {apiGroups: [""], resources: [secrets], verbs: [create]}`, `system - {apiGroups: [""], resources: [secrets], resourceNames: [webhook], verbs: [get, update]}`,
		}},
		"secure metrics": {rbac.Input{Settings: with(func(s *settings.Settings) { s.Metrics.Address, s.Metrics.Secure = ":8443", true })}, []string{
			"- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}", "- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, problems := derive(t, test.in); !slices.Equal(got, test.want) || len(problems) > 0 {
				t.Errorf("got\n%s\n%v", strings.Join(got, "\n"), problems)
			}
		})
	}
}

// A selector that can select other resources tomorrow has rules for those of today, which say so.
func TestOpenSelectorsHaveNoWildcards(t *testing.T) {
	roles, problems := rbac.Derive(rbac.Input{Handlers: registry.Handlers{declared(handler.OnEvent, "v1", selector.Everything)}, Snapshot: present})
	text := rbac.YAML("mine", roles, rbac.Account{Namespace: "system", Name: "operator"})
	for _, want := range []string{"resources: [nodes, pods, services]", "when definitions", "kind: ClusterRoleBinding", "name: operator"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s\n%v", want, text, problems)
		}
	}
}

func TestWhatCannotBeDerivedIsSaid(t *testing.T) {
	_, problems := derive(t, rbac.Input{
		Handlers: registry.Handlers{declared(handler.OnCreate, "nothings")},
		Needs:    []registry.Need{{Selector: selector.New("missing"), Verbs: []string{"get"}, DeclaredAt: "main.go:9"}},
	})
	if len(problems) != 2 || !strings.Contains(problems[0].Error(), "nothings") || !strings.Contains(problems[1].Error(), "main.go:9") {
		t.Errorf("got %v", problems)
	}
}

func TestTextSaysWhatIsUnknown(t *testing.T) {
	failed := discovery.Snapshot{Resources: present.Resources, Failed: map[schema.GroupVersion]error{{Group: "metrics.k8s.io", Version: "v1"}: nil}}
	ensuring := declared(handler.OnCreate, "kopfexamples")
	ensuring.Ensures = &convergence.Options{}
	text := rbac.Text(rbac.Input{Handlers: registry.Handlers{ensuring}, Snapshot: failed, Settings: settings.Settings{Name: "mine"}}, rbac.Account{}, time.Unix(0, 0))
	for _, want := range []string{"1970-01-01T00:00:00Z", "# Not derived: main.go:7: the children", "metrics.k8s.io/v1 are unknown", "name: mine\n", "# The handled objects, with the operator's records on them: fn (create)."} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	var role map[string]any
	if err := yaml.Unmarshal([]byte(text), &role); err != nil || role["kind"] != "ClusterRole" {
		t.Errorf("got %v, %v", role, err)
	}
}

func TestPermissionsOfRequests(t *testing.T) {
	for request, want := range map[string]rbac.Permission{
		"GET /api/v1/namespaces/a/pods/b":                                      {Verb: "get", Resource: "pods", Namespace: "a", Name: "b"},
		"GET /api/v1/pods?watch=true":                                          {Verb: "watch", Resource: "pods"},
		"GET /cluster/api/v1/pods":                                             {Verb: "list", Resource: "pods"},
		"GET /api/v1/namespaces":                                               {Verb: "list", Resource: "namespaces"},
		"GET /api/v1/namespaces/a":                                             {Verb: "get", Resource: "namespaces", Name: "a"},
		"PUT /api/v1/namespaces/a/finalize":                                    {Verb: "update", Resource: "namespaces/finalize", Name: "a"},
		"PATCH /apis/kopf.dev/v1/namespaces/a/kopfexamples/b/status":           {Verb: "patch", Group: "kopf.dev", Resource: "kopfexamples/status", Namespace: "a", Name: "b"},
		"POST /apis/kopf.dev/v1/namespaces/a/kopfexamples":                     {Verb: "create", Group: "kopf.dev", Resource: "kopfexamples", Namespace: "a"},
		"DELETE /apis/kopf.dev/v1/namespaces/a/kopfexamples":                   {Verb: "deletecollection", Group: "kopf.dev", Resource: "kopfexamples", Namespace: "a"},
		"DELETE /apis/kopf.dev/v1/kopfexamples/b":                              {Verb: "delete", Group: "kopf.dev", Resource: "kopfexamples", Name: "b"},
		"GET /apis/kopf.dev/v1/kopfpeerings?fieldSelector=metadata.name%3Done": {Verb: "list", Group: "kopf.dev", Resource: "kopfpeerings", Name: "one"},
		"GET /apis/kopf.dev/v1":                                                {},
		"GET /api":                                                             {},
		"GET /version":                                                         {},
	} {
		method, path, _ := strings.Cut(request, " ")
		if got, _ := rbac.Of(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s: got %+v, want %+v", request, got, want)
		}
	}
}

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
	if want := []string{"a secrets  list", "a secrets  watch", "a services  get", "a services  create", "a services  patch"}; !slices.Equal(used, want) {
		t.Errorf("got %+v", journal.Used())
	}
}

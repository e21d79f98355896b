package rbac_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
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
	{Group: "zalando.org", Version: "v1", Plural: "clusterkopfpeerings", Kind: "ClusterKopfPeering", Preferred: true, Status: true, Subresources: []string{"status"}, Verbs: all},
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
			"- {apiGroups: [kopf.dev], resources: [clusterkopfpeerings], resourceNames: [default], verbs: [get, list, watch, patch]}",
			"- {apiGroups: [zalando.org], resources: [clusterkopfpeerings], resourceNames: [default], verbs: [get, list, watch]}",
			"- {apiGroups: [zalando.org], resources: [clusterkopfpeerings/status], resourceNames: [default], verbs: [patch]}")},
		"conditions": {
			rbac.Input{Handlers: append(slices.Clone(create), declared(handler.Conditions, "kopfexamples")), Settings: with(func(s *settings.Settings) { s.Scope.Namespaces = []string{"a"} })},
			append([]string{"- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], resourceNames: [kopfexamples.kopf.dev], verbs: [get]}"}, in("a", served...)...),
		},
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
		"shards": {rbac.Input{Settings: with(func(s *settings.Settings) { s.Name, s.Replicas.Shards = "mine", 16 }), Namespace: "system"}, in("system",
			"- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch, create, update, delete]}")},
		"shards elsewhere": {rbac.Input{Settings: with(func(s *settings.Settings) {
			s.Name, s.Replicas.Shards, s.Replicas.LeaseNamespace = "mine", 16, "leases"
		}), Namespace: "system"}, in("leases",
			"- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch, create, update, delete]}")},
		"replicas": {rbac.Input{Settings: with(func(s *settings.Settings) { s.Name, s.Replicas.LeaderElection = "mine", true }), Namespace: "system"}, in("system",
			"- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}",
			"- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [mine], verbs: [get, update]}",
			`- {apiGroups: [""], resources: [events], verbs: [create]}`)},
		"admission": {rbac.Input{Handlers: registry.Handlers{declared(handler.OnValidate, "kopfexamples")}, Settings: with(func(s *settings.Settings) {
			s.Admission.Managed, s.Admission.Server = "mine.example.com", servers.Server{Secret: "system/webhook"}
		})}, []string{
			"- {apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations, mutatingwebhookconfigurations], verbs: [create]}",
			"- {apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations, mutatingwebhookconfigurations], resourceNames: [mine.example.com], verbs: [get, patch]}",
			`system - {apiGroups: [""], resources: [secrets], verbs: [create]}`, `system - {apiGroups: [""], resources: [secrets], resourceNames: [webhook], verbs: [get, update]}`,
		}},
		"conversions": {rbac.Input{Conversions: converting(t, "kopfexamples"), Settings: with(func(s *settings.Settings) {
			s.Admission.Managed, s.Admission.Server = "mine.example.com", servers.Server{Secret: "system/webhook"}
		})}, []string{
			"- {apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations, mutatingwebhookconfigurations], resourceNames: [mine.example.com], verbs: [get, patch]}",
			"- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], resourceNames: [kopfexamples.kopf.dev], verbs: [get, patch]}",
			`system - {apiGroups: [""], resources: [secrets], verbs: [create]}`, `system - {apiGroups: [""], resources: [secrets], resourceNames: [webhook], verbs: [get, update]}`,
		}},
		"conversions that are not managed": {rbac.Input{Conversions: converting(t, "kopfexamples"), Settings: quiet}, nil},
		"no admission handlers anymore": {rbac.Input{Settings: with(func(s *settings.Settings) {
			s.Admission.Managed, s.Admission.Server = "mine.example.com", servers.Server{Secret: "system/webhook"}
		})}, []string{
			"- {apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations, mutatingwebhookconfigurations], resourceNames: [mine.example.com], verbs: [get, patch]}",
		}},
		"the page": {rbac.Input{Handlers: create, Snapshot: present, Settings: with(func(s *settings.Settings) {
			s.Page.Address, s.Scope.Namespaces = ":8444", []string{"a"}
			s.Replicas.LeaderElection, s.Replicas.LeaseName, s.Replicas.LeaseNamespace = true, "mine", "a"
		})}, []string{
			"- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}", "- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}",
			"a " + served[0], "a " + served[1],
			"a - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}",
			"a - {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [mine], verbs: [get, update]}",
			`a - {apiGroups: [""], resources: [events], verbs: [create]}`, `a - {apiGroups: [""], resources: [events], verbs: [list]}`,
			"a - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [list]}",
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
	text := rbac.Text(rbac.Input{Handlers: registry.Handlers{declared(handler.OnCreate, "kopfexamples")}, Snapshot: failed, Settings: settings.Settings{Name: "mine"}}, rbac.Account{}, time.Unix(0, 0))
	for _, want := range []string{"1970-01-01T00:00:00Z", "metrics.k8s.io/v1 are unknown", "name: mine\n", "# The handled objects, with the operator's records on them: fn (create)."} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	var role map[string]any
	if err := yaml.Unmarshal([]byte(text), &role); err != nil || role["kind"] != "ClusterRole" {
		t.Errorf("got %v, %v", role, err)
	}
}

// ensuring returns what kopf.Ensure declares for two functions.
func ensuring(t *testing.T) (all registry.Handlers) {
	t.Helper()
	fn := func(context.Context, *handler.Call) ([]client.Object, error) { return nil, nil }
	for _, id := range []string{"children", "others"} {
		declarations, err := handler.Ensure(selector.New("kopfexamples"), handlertest.Returning(fn), handler.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, declarations...)
	}
	return all
}

// pasted returns what the comments of the roles suggest to declare.
func pasted(t *testing.T, text string) *ast.CallExpr {
	t.Helper()
	for line := range strings.Lines(text) {
		if _, code, found := strings.Cut(strings.TrimSpace(line), "#     "); found {
			call, err := parser.ParseExpr(code)
			if err != nil {
				t.Fatalf("%s is not Go: %v", code, err)
			}
			return call.(*ast.CallExpr)
		}
	}
	t.Fatalf("there is nothing to paste in\n%s", text)
	return nil
}

// Without the name that kopf.Ensure needs, the roles have a name that is not that of the operator.
func TestTheMissingNameOfAnOperatorIsSaid(t *testing.T) {
	in := rbac.Input{Handlers: ensuring(t), Snapshot: present}
	const hint = "# Not derived: the name of the operator"
	if text := rbac.Text(in, rbac.Account{}, time.Unix(0, 0)); !strings.Contains(text, hint) || !strings.Contains(text, "settings.Name") || !strings.Contains(text, "name: operator\n") {
		t.Errorf("got\n%s", text)
	}
	in.Settings.Name = "mine"
	if text := rbac.Text(in, rbac.Account{}, time.Unix(0, 0)); strings.Contains(text, hint) || !strings.Contains(text, "name: mine\n") {
		t.Errorf("got\n%s", text)
	}
}

func TestEachEnsureIsSaidOnceToHaveUnknownChildren(t *testing.T) {
	text := rbac.Text(rbac.Input{Handlers: ensuring(t), Snapshot: present, Settings: settings.Settings{Name: "mine"}}, rbac.Account{}, time.Unix(0, 0))
	if strings.Count(text, "Not derived") != 2 || strings.Count(text, `kopf.Ensure "children" `) != 1 || strings.Count(text, `kopf.Ensure "others" `) != 1 {
		t.Errorf("got\n%s", text)
	}
	if !strings.Contains(text, "status of handlers: kopf.Ensure children, kopf.Ensure others.\n") || strings.Contains(text, "restore") {
		t.Errorf("the reasons do not name the handlers that were declared:\n%s", text)
	}
	if call := pasted(t, text); len(call.Args) != 7 {
		t.Errorf("there are not 6 verbs after the resource in\n%s", text)
	}
}

func TestUnknownChildrenAreSaidUntilNeedsDeclaresSome(t *testing.T) {
	need := func(resource string, verbs ...string) registry.Need {
		return registry.Need{Selector: selector.New(resource), Verbs: verbs, DeclaredAt: "main.go:9"}
	}
	children := []string{"get", "list", "watch", "create", "patch", "delete"}
	tests := map[string]struct {
		needs []registry.Need
		said  bool
	}{
		"no needs":                            {nil, true},
		"needs that children do not have":     {[]registry.Need{need("pods", "get", "create")}, true},
		"the verbs of children, of two kinds": {[]registry.Need{need("pods", children[:3]...), need("services", children[3:]...)}, true},
		"children":                            {[]registry.Need{need("pods", "get"), need("services", children...)}, false},
		"children, in two parts":              {[]registry.Need{need("services", children[:3]...), need("services", children[3:]...)}, false},
		"children that are not served yet":    {[]registry.Need{need("monitors", children...)}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, problems := derive(t, rbac.Input{Handlers: ensuring(t), Needs: test.needs, Settings: settings.Settings{Name: "mine"}})
			if said := strings.Contains(fmt.Sprint(problems), "children"); said != test.said {
				t.Errorf("got %v", problems)
			}
		})
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

// converting declares conversions of a resource.
func converting(t *testing.T, plural string) conversion.Set {
	t.Helper()
	d, err := conversion.New(selector.New(plural), "v1", "v2", func(context.Context, *conversion.Call) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return conversion.Set{d}
}

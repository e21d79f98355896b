package deployment_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-go/kopf/internal/golden"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/cli/deployment"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// declared returns a handler of a kind for the resources of a selector.
func declared(kind handler.Kind, sel selector.Selector) *handler.Declaration {
	return &handler.Declaration{Kind: kind, ID: "open", Selector: sel, DeclaredAt: "shops/main.go:7"}
}

// shops is the program of the tests.
func shops(webhook bool) inspect.Program {
	sel := selector.New("example.com", "v1", "shops")
	p := inspect.Program{
		Handlers: registry.Handlers{declared(handler.OnCreate, sel)},
		Needs:    []registry.Need{{Selector: selector.New("deployments"), Verbs: []string{"get", "create"}, DeclaredAt: "shops/main.go:9"}},
	}
	p.Settings.Name = "shops.example.com"
	if webhook {
		p.Handlers = append(p.Handlers, declared(handler.OnValidate, sel))
		p.Settings.Admission.Managed = "shops.example.com"
		p.Settings.Admission.Server = servers.Server{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "stores", Name: "shops-webhook"}, Port: 9444, Secret: "stores/shops-webhook",
		}
	}
	return p
}

func definitions(t *testing.T) []manifests.Definition {
	t.Helper()
	found, err := manifests.Require("testdata/definitions")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// deploy returns the deployment of a program with its settings as in the pods.
func deploy(t *testing.T, p inspect.Program, o deployment.Options) *deployment.Deployment {
	t.Helper()
	o.Name, o.Namespace, o.Image = "shops", "stores", "registry.example.com/shops:v1"
	o.Replicas = max(1, o.Replicas)
	o.Version = "1.0.0"
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	o.Apply(&p.Settings)
	known, err := deployment.Know(p, o.Definitions, discovery.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := deployment.New(p, known, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestText compares manifests with files. If KOPF_UPDATE_GOLDEN is set, it writes the files.
func TestText(t *testing.T) {
	tests := map[string]struct {
		program inspect.Program
		options deployment.Options
	}{
		"plain":      {shops(false), deployment.Options{Replicas: 2, Definitions: definitions(t)}},
		"components": {shops(true), deployment.Options{Replicas: 2, Components: []string{"metrics", "webhook", "page", "network-policy", "certmanager"}}},
		"shards":     {shops(false), deployment.Options{Replicas: 3, Shards: 16, Standalone: true, Components: []string{"network-policy"}}},
		"variables":  {shops(false), deployment.Options{Variables: []string{"TOKEN", "HOSTNAME", "POD_NAMESPACE", "DATABASE_URL", "TOKEN"}}},
		"namespaced": {shops(false), deployment.Options{Namespaced: true, Definitions: definitions(t)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := deploy(t, test.program, test.options).Text()
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", name+".yaml"), got)
			again, err := deploy(t, test.program, test.options).Text()
			if err != nil || again != got {
				t.Errorf("it differs from one call to the next: %v", err)
			}
			if _, err := manifests.Objects([]byte(got)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheDashboardIsAConfigMap(t *testing.T) {
	text, err := deploy(t, shops(false), deployment.Options{Components: []string{"metrics", "prometheus"}}).Text()
	if err != nil {
		t.Fatal(err)
	}
	all, err := manifests.Objects([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1]
	data, _ := last.Object["data"].(map[string]any)
	board, _ := data["kopf-operators.json"].(string)
	if last.GetName() != "shops-dashboard" || !strings.Contains(board, `"panels"`) {
		t.Errorf("got %v", last)
	}
}

// A kustomization has no webhooks if the program has no such handlers, and definitions are copied unless they are in it.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := deploy(t, shops(false), deployment.Options{Definitions: definitions(t), Components: []string{"metrics"}}).Write(dir); err != nil {
		t.Fatal(err)
	}
	var found []string
	if err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, path)
			found = append(found, filepath.ToSlash(name))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"crd/kustomization.yaml", "crd/shops.yaml", "default/kustomization.yaml", "default/namespace.yaml",
		"manager/deployment.yaml", "manager/kustomization.yaml", "metrics/kustomization.yaml", "metrics/reader.yaml", "metrics/roles.yaml", "metrics/service.yaml",
		"namespaced/kustomization.yaml", "network-policy/kustomization.yaml", "network-policy/policy.yaml",
		"page/kustomization.yaml", "page/reader.yaml", "page/roles.yaml", "page/service.yaml",
		"prometheus/dashboard.json", "prometheus/kustomization.yaml", "prometheus/monitor.yaml", "prometheus/rules.yaml",
		"rbac/base/kustomization.yaml", "rbac/base/leader_election.yaml", "rbac/base/service_account.yaml", "rbac/cluster/kustomization.yaml", "rbac/cluster/role.yaml",
		"rbac/namespaced/kustomization.yaml", "rbac/namespaced/role.yaml", "rbac/users/kustomization.yaml", "rbac/users/roles.yaml",
	}
	if !slices.Equal(found, want) {
		t.Errorf("got %q", found)
	}
	text, err := os.ReadFile(filepath.Join(dir, "default", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "kustomization.txt"), string(text))

	again, err := manifests.Require(filepath.Join(dir, "crd"))
	if err != nil {
		t.Fatal(err)
	}
	if err := deploy(t, shops(false), deployment.Options{Definitions: again, Components: []string{"metrics"}}).Write(dir); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "default", "kustomization.yaml")); err != nil || string(after) != string(text) {
		t.Errorf("with the copies as definitions, it differs: %v\n%s", err, after)
	}
}

// hack/tools/chart renders a chart with the engine of Helm.
func TestWriteChart(t *testing.T) {
	dir := t.TempDir()
	if err := deploy(t, shops(true), deployment.Options{Replicas: 2, Definitions: definitions(t), Components: []string{"webhook"}}).WriteChart(dir); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"Chart.yaml": "chart.txt", "values.yaml": "chart-values.txt", "templates/deployment.yaml": "chart-deployment.txt",
		"templates/webhook/certificate_role.yaml": "chart-certificate-role.txt", "templates/checks.yaml": "chart-checks.txt",
	} {
		text, err := os.ReadFile(filepath.Join(dir, file)) //nolint:gosec // it was just written
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, filepath.Join("testdata", want), string(text))
	}
	rules, err := os.ReadFile(filepath.Join(dir, "templates", "prometheus", "rules.yaml")) //nolint:gosec // it was just written
	if err != nil || !strings.Contains(string(rules), "{{ `{{` }} $labels.operator {{ `}}` }}") {
		t.Errorf("the templates of alerts are not left to Prometheus: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "crds", "shops.yaml")); err != nil {
		t.Error(err)
	}
}

func TestResourcesWithoutACluster(t *testing.T) {
	tests := map[string]struct {
		selector selector.Selector
		want     string // the role, or the problem
	}{
		"built in":             {selector.New("pods"), "resources: [pods]"},
		"by its short name":    {selector.New("deploy"), "resources: [deployments]"},
		"of a definition":      {selector.New("shops"), "resources: [shops/status]"},
		"in another version":   {selector.New("example.com/v1beta1", "shops"), "resources: [shops]"},
		"complete":             {selector.New("other.com/v1", "things"), "# Not derived: whether things.v1.other.com is namespaced and has a status subresource"},
		"a Go type":            {selector.Exact(selector.Resource{Group: "other.com", Version: "v1", Kind: "Policy"}.GVK()), "resources: [policies/status]"},
		"without a version":    {selector.New("other.com", "things"), `shops/main.go:7: "other.com/things"`},
		"without a group":      {selector.New("things"), `shops/main.go:7: "things"`},
		"everything":           {selector.New(selector.Everything), `shops/main.go:7: "*" selects what a cluster serves`},
		"everything of a kind": {selector.New("example.com", selector.Everything), "selects what a cluster serves"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := inspect.Program{Handlers: registry.Handlers{declared(handler.OnCreate, test.selector)}}
			var got string
			_, err := deployment.Know(p, definitions(t), discovery.Snapshot{})
			var unknown *deployment.UnknownError
			switch {
			case errors.As(err, &unknown):
				got = err.Error()
			case err != nil:
				t.Fatal(err)
			default:
				got, err = deploy(t, p, deployment.Options{Definitions: definitions(t)}).Text()
				if err != nil {
					t.Fatal(err)
				}
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// What a cluster serves is enough for all selectors.
func TestResourcesOfACluster(t *testing.T) {
	p := inspect.Program{Handlers: registry.Handlers{declared(handler.OnCreate, selector.New(selector.Everything))}}
	served := discovery.Snapshot{Resources: []selector.Resource{{Group: "g", Version: "v1", Plural: "rs", Preferred: true, Verbs: []string{"list", "watch"}}}}
	known, err := deployment.Know(p, nil, served)
	if err != nil || len(known.Resources) != 1 || len(known.Assumed) > 0 {
		t.Errorf("got %+v, %v", known, err)
	}
}

func TestMistakesInOptions(t *testing.T) {
	valid := deployment.Options{Name: "shops", Namespace: "stores", Image: "i", Replicas: 1, Version: "1.0.0"}
	for want, change := range map[string]func(*deployment.Options){
		"beginning of the names":       func(o *deployment.Options) { o.Name = "9" },
		"more than 43 characters":      func(o *deployment.Options) { o.Name = strings.Repeat("a", 44) },
		"name of a namespace":          func(o *deployment.Options) { o.Namespace = "a.b" },
		"name of an image":             func(o *deployment.Options) { o.Image = "a b" },
		"form such as 1.2.3":           func(o *deployment.Options) { o.Version = "1.2" },
		"at least 1":                   func(o *deployment.Options) { o.Replicas = 0 },
		`no component "metric"`:        func(o *deployment.Options) { o.Components = []string{"metric"} },
		"prometheus needs metrics":     func(o *deployment.Options) { o.Components = []string{"prometheus"} },
		"certmanager needs webhook: a": func(o *deployment.Options) { o.Components = []string{"certmanager"} },
	} {
		o := valid
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	if err := valid.Validate(); err != nil {
		t.Error(err)
	}
}

func TestWebhooksNeedHandlers(t *testing.T) {
	if _, err := deployment.New(shops(false), deployment.Known{}, deployment.Options{Components: []string{"webhook"}}); err == nil {
		t.Error("there is no error")
	}
}

// A kustomization has one namespace.
// A program without a server starts only if a startup handler or a manager sets one, which is unknown here.
func TestHandlersWithoutAServerAreNamed(t *testing.T) {
	unreachable := shops(true)
	unreachable.Settings.Admission.Server = nil
	for want, program := range map[int]inspect.Program{0: shops(true), 1: unreachable} {
		problems := deploy(t, program, deployment.Options{Components: []string{"webhook"}, Definitions: definitions(t)}).Problems()
		problems = slices.DeleteFunc(problems, func(err error) bool { return !strings.Contains(err.Error(), "Settings.Admission.Server") })
		if len(problems) != want {
			t.Errorf("got %v", problems)
		}
	}
}

// The components that are wanted are in both forms of a kustomization.
func TestBothKustomizationsHaveTheComponents(t *testing.T) {
	dir := t.TempDir()
	if err := deploy(t, shops(true), deployment.Options{Components: []string{"metrics", "webhook"}, Definitions: definitions(t)}).Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"default", "namespaced"} {
		text, err := os.ReadFile(filepath.Join(dir, form, "kustomization.yaml"))
		if err != nil || !strings.Contains(string(text), "\ncomponents:\n  - ../metrics\n  - ../webhook\n") {
			t.Errorf("%s: %v\n%s", form, err, text)
		}
	}
}

func TestKustomizationsHaveOneNamespace(t *testing.T) {
	p := shops(false)
	p.Settings.Replicas.LeaseNamespace = "elsewhere"
	if err := deploy(t, p, deployment.Options{}).Write(t.TempDir()); err == nil || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("got %v", err)
	}
	if err := deploy(t, shops(false), deployment.Options{Namespaced: true}).Write(t.TempDir()); err == nil {
		t.Error("there is no error")
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{"Shops.example.com": "shops-example-com", "": "program", "a b": "program"} {
		if got := deployment.NameFor(settings.Settings{Name: name}, "program"); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if got := deployment.NameFor(settings.Settings{}, "__debug"); got != "operator" {
		t.Errorf("got %s", got)
	}
}

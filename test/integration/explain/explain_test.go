// Package explain tests the questions about operators against an API server.
package explain

import (
	"context"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/rbac"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{Parallel: 6, CRDs: []string{"config/crd/kopf.dev", testenv.ExampleCRDs, testenv.FixtureCRDs}})
}

func TestAnObjectIsExplainedWithoutAnOperator(t *testing.T) {
	registry := kopf.NewRegistry()
	registry.OnCreate(kopf.Resource("kopf.dev", "v1", "kopfexamples"), func(context.Context, *kopf.Change) error {
		t.Error("it is called")
		return nil
	}, kopf.ID("fn"))
	handlers, err := registry.Declarations().Handlers(nil)
	if err != nil {
		t.Fatal(err)
	}
	namespace := cluster.Namespace(t)
	if err := cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, "a", nil)); err != nil {
		t.Fatal(err)
	}
	c, err := inspect.Connect(t.Context(), cluster.Config(), inspect.Program{Handlers: handlers, Settings: settings.Default()})
	if err != nil {
		t.Fatal(err)
	}
	said, err := c.Explain(t.Context(), inspect.Target{Kind: "kopfexample", Namespace: namespace, Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if len(said.Handlers) != 1 || said.Handlers[0].ID != "fn" || said.Handlers[0].State != "due" {
		t.Errorf("got %+v", said.Handlers)
	}
	plan, err := c.NewPlan(t.Context(), namespace)
	if err != nil || plan.Changes() != 1 || plan.Resources[0].Creations != 1 {
		t.Errorf("got %+v, %v", plan, err)
	}
	if _, err := c.Explain(t.Context(), inspect.Target{Kind: "pods", Namespace: namespace, Name: "a"}); err == nil || !strings.Contains(err.Error(), "no handlers for pods") {
		t.Errorf("got %v", err)
	}
}

// The API server drops fields without a word if it does not let the operator convert the objects.
func TestTheConversionOfAnObjectIsExplained(t *testing.T) {
	same := func(context.Context, *kopf.Conversion) error { return nil }
	registry := kopf.NewRegistry()
	sites := kopf.Resource("kopf.dev", "sites")
	registry.OnCreate(sites, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("fn"))
	registry.OnConvert(sites, "v1beta1", "v1", same)
	registry.OnConvert(sites, "v1", "v1beta1", same)
	handlers, err := registry.Declarations().Handlers(nil)
	if err != nil {
		t.Fatal(err)
	}
	namespace := cluster.Namespace(t)
	site := testenv.NewObject("Site", namespace, "a", nil)
	site.SetAPIVersion("kopf.dev/v1beta1")
	if err := cluster.Client().Create(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	c, err := inspect.Connect(t.Context(), cluster.Config(), inspect.Program{Handlers: handlers, Conversions: registry.Declarations().Conversions(nil), Settings: settings.Default()})
	if err != nil {
		t.Fatal(err)
	}
	said, err := c.Explain(t.Context(), inspect.Target{Kind: "sites", Namespace: namespace, Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(said.Notes, "\n")
	for _, want := range []string{
		"The API server does not let the operator convert its objects between the versions v1beta1, v1: it drops the fields that other versions do not have.",
		`Some of its objects cannot be converted: sites.kopf.dev: no conversion leads from v1 to v1alpha1: declare kopf.OnConvert from "v1" to "v1alpha1"`,
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in:\n%s", want, notes)
		}
	}
}

func TestRolesAreDerivedFromTheCluster(t *testing.T) {
	registry := kopf.NewRegistry()
	registry.OnCreate(kopf.Resource("kopf.dev", "v1", "kopfexamples"), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("fn"))
	registry.OnEvent(kopf.Resource("absent.example.com", "v1", "things"), func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("absent"))
	registry.Needs(kopf.Resource("v1", "configmaps"), "create")
	handlers, err := registry.Declarations().Handlers(nil)
	if err != nil {
		t.Fatal(err)
	}
	program := inspect.Program{Handlers: handlers, Needs: registry.Declarations().Needs(), Settings: settings.Default()}
	program.Settings.Scope.Namespaces = []string{"team"}
	c, err := inspect.Connect(t.Context(), cluster.Config(), program)
	if err != nil {
		t.Fatal(err)
	}
	roles := c.Roles("operators", rbac.Account{Namespace: "operators", Name: "my-operator"})
	for _, want := range []rbacv1.PolicyRule{
		{Verbs: []string{"patch"}, APIGroups: []string{"kopf.dev"}, Resources: []string{"kopfexamples"}},
		{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
	} {
		if !slices.ContainsFunc(roles.Items, func(o runtime.Object) bool { return permitsIn(o, "team", want) }) {
			t.Errorf("%v is not permitted by %v", want, roles.Items)
		}
	}
	if len(roles.Problems) != 1 || !strings.Contains(roles.Problems[0].Error(), "things") {
		t.Errorf("got the problems %q", roles.Problems)
	}
	text := roles.Text(inspect.Style{})
	for _, want := range []string{"kind: RoleBinding\n", "    name: my-operator\n    namespace: operators\n", "  namespace: team\n", "# Not derived: "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

// permitsIn reports whether an object is a role in the namespace with the verb, the group, and the
// resource of the rule.
func permitsIn(o runtime.Object, namespace string, want rbacv1.PolicyRule) bool {
	role, ok := o.(*rbacv1.Role)
	return ok && role.Namespace == namespace && slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, want.Verbs[0]) && slices.Contains(r.APIGroups, want.APIGroups[0]) && slices.Contains(r.Resources, want.Resources[0])
	})
}

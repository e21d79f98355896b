package scopes

import (
	"fmt"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var (
	examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")
	clusters = kopf.Resource("kopf.dev", "v1", "kopfclusters")
)

func scope(namespaces ...string) func(*kopf.Options) {
	return func(o *kopf.Options) { o.Settings.Scope.Namespaces = namespaces }
}

func TestNamespacePatternsSelectNamespaces(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		patterns []string // %s is the common prefix of the namespaces
		handled  []string
	}{
		"a glob":                               {[]string{"%s-*-pr-*"}, []string{"my-pr-1", "my-pr-2"}},
		"a negation within a glob":             {[]string{"%s-*,!*-pr-1"}, []string{"my-live", "my-pr-2"}},
		"the rightmost one decides":            {[]string{"%s-*,!*-pr-*,*-pr-2"}, []string{"my-live", "my-pr-2"}},
		"a glob and a name":                    {[]string{"%s-*-pr-1", "%s-my-live"}, []string{"my-live", "my-pr-1"}},
		"excluded names can be included again": {[]string{"!*,%s-my-*"}, []string{"my-live", "my-pr-1", "my-pr-2"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, calls, registry := gomega.NewWithT(t), &calls{}, kopf.NewRegistry()
			unique := cluster.Namespace(t)
			prefix := "p" + unique[len(unique)-5:]
			namespace(t, g, prefix+"-my-live") // the others come later
			registry.OnCreate(examples, calls.creations, kopf.ID("create"))
			registry.OnCreate(clusters, calls.creations, kopf.ID("create_cluster"), kopf.Labels(map[string]kopf.Matcher{"test": kopf.Equal(prefix)}))
			var patterns []string
			for _, pattern := range test.patterns {
				patterns = append(patterns, fmt.Sprintf(pattern, prefix))
			}
			operators.Start(t, cluster.Config(), "", registry, scope(patterns...))
			expected := []string{"/" + prefix}
			for _, each := range test.handled {
				expected = append(expected, prefix+"-"+each+"/one")
			}
			namespace(t, g, prefix+"-my-pr-1")
			namespace(t, g, prefix+"-my-pr-2")
			for _, each := range []string{"my-live", "my-pr-1", "my-pr-2"} {
				create(t, g, testenv.NewObject("KopfExample", prefix+"-"+each, "one", nil))
			}
			unscoped := testenv.NewObject("KopfCluster", "", prefix, nil)
			unscoped.SetLabels(map[string]string{"test": prefix})
			create(t, g, unscoped)
			g.Eventually(calls.all).Should(gomega.ConsistOf(expected))
			g.Consistently(calls.all, "300ms").Should(gomega.ConsistOf(expected))
		})
	}
}

func TestNamespacesAreServedByTheirLabels(t *testing.T) {
	t.Parallel()
	g, calls, registry := gomega.NewWithT(t), &calls{}, kopf.NewRegistry()
	prefix := cluster.Namespace(t)
	registry.OnCreate(examples, calls.creations, kopf.ID("create"))
	names := kopf.NewIndex(registry, examples, indexed, kopf.ID("names"))
	for _, name := range []string{"-a", "-b"} {
		namespace(t, g, prefix+name)
		create(t, g, testenv.NewObject("KopfExample", prefix+name, "one", nil))
	}
	label := func(name, value string) {
		merge := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"of":%s}}}`, value))
		g.Expect(cluster.Client().Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: prefix + name}}, merge)).To(gomega.Succeed())
	}
	label("-a", `"`+prefix+`"`)
	operators.Start(t, cluster.Config(), "", registry, scope("labels:of="+prefix))
	g.Eventually(calls.all).Should(gomega.ConsistOf(prefix + "-a/one"))
	label("-b", `"`+prefix+`"`)
	g.Eventually(calls.all).Should(gomega.ConsistOf(prefix+"-a/one", prefix+"-b/one"))
	g.Eventually(names.Len).Should(gomega.Equal(2))
	label("-a", "null")
	g.Eventually(names.Len).Should(gomega.Equal(1))
	create(t, g, testenv.NewObject("KopfExample", prefix+"-a", "two", nil))
	create(t, g, testenv.NewObject("KopfExample", prefix+"-b", "two", nil))
	g.Eventually(calls.all).Should(gomega.ConsistOf(prefix+"-a/one", prefix+"-b/one", prefix+"-b/two"))
}

func TestCreatedAndDeletedNamespacesAreNoticed(t *testing.T) {
	t.Parallel()
	const many = 30
	g, calls, registry, config := gomega.NewWithT(t), &calls{}, kopf.NewRegistry(), cluster.Config()
	prefix := cluster.Namespace(t)
	registry.OnCreate(examples, calls.creations, kopf.ID("create"))
	names := kopf.NewIndex(registry, examples, indexed, kopf.ID("names"))
	requests := testenv.Count(config)
	operators.Start(t, config, "", registry, scope(prefix+"-*"))
	for round := range 2 { // the second time under the same names
		var removals []func()
		expected := []string{}
		for i := range many {
			name := fmt.Sprintf("%s-%d", prefix, i)
			removals = append(removals, namespace(t, g, name))
			create(t, g, testenv.NewObject("KopfExample", name, fmt.Sprintf("round-%d", round), nil))
			expected = append(expected, fmt.Sprintf("%s/round-%d", name, round))
		}
		g.Eventually(calls.all).Should(gomega.ContainElements(expected))
		g.Expect(calls.all()).To(gomega.HaveLen((round + 1) * many))
		g.Eventually(names.Len).Should(gomega.Equal(many))
		for _, remove := range removals {
			// The objects remain, because no controller deletes them here: the operator must
			// forget them together with the namespace.
			remove()
		}
		g.Eventually(names.Len).Should(gomega.BeZero())
		for i := range many {
			obj := testenv.NewObject("KopfExample", fmt.Sprintf("%s-%d", prefix, i), fmt.Sprintf("round-%d", round), nil)
			g.Expect(cluster.Client().Delete(t.Context(), obj)).To(gomega.Succeed())
		}
	}
	g.Expect(requests.Snapshot()[testenv.Key{Method: testenv.MethodWatch, Target: "namespaces"}]).To(gomega.BeNumerically("<=", 2))
}

// A namespace without a role for the operator holds up neither the start nor, with indices, the
// handlers in other namespaces.
func TestNamespaceWithoutARoleHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	g, calls, registry := gomega.NewWithT(t), &calls{}, kopf.NewRegistry()
	in := cluster.Namespace(t)
	prefix := "r" + in[len(in)-5:]
	config := account(t, g, in,
		rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
	)
	namespace(t, g, prefix+"-good")
	namespace(t, g, prefix+"-bad-0")
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: prefix + "-good", Name: "operator"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"kopf.dev"}, Resources: []string{"kopfexamples", "kopfexamples/status"}, Verbs: []string{"get", "list", "watch", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: prefix + "-good", Name: "operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "operator"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: in, Name: "operator"}},
	}
	g.Expect(admin(t).Create(t.Context(), role)).To(gomega.Succeed())
	g.Expect(admin(t).Create(t.Context(), binding)).To(gomega.Succeed())
	registry.OnCreate(examples, calls.creations, kopf.ID("create"))
	kopf.NewIndex(registry, examples, indexed, kopf.ID("names"))
	operators.Start(t, config, "", registry, scope(prefix+"-*"))

	create(t, g, testenv.NewObject("KopfExample", prefix+"-good", "one", nil))
	g.Eventually(calls.all, "60s").Should(gomega.ContainElement(prefix + "-good/one"))
	for i := range 4 {
		namespace(t, g, fmt.Sprint(prefix, "-bad-", i+1))
		create(t, g, testenv.NewObject("KopfExample", prefix+"-good", fmt.Sprint("late-", i), nil))
	}
	g.Eventually(calls.all, "30s").Should(gomega.HaveLen(5))
}

package scopes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestDefinitionIsInstalledAndRemoved(t *testing.T) {
	t.Parallel()
	g, calls, registry, config := gomega.NewWithT(t), &calls{}, kopf.NewRegistry(), cluster.Config()
	in, stopped := cluster.Namespace(t), make(chan string, 10)
	group := in + ".example.com"
	late := kopf.Resource(group, "lates")
	registry.OnCreate(late, calls.creations, kopf.ID("create"))
	registry.Daemon(late, func(_ context.Context, d *kopf.Task) error {
		<-d.Stopped()
		stopped <- d.Name()
		return nil
	}, kopf.ID("daemon"))
	names := kopf.NewIndex(registry, late, indexed, kopf.ID("names"))
	registry.OnCreate(examples, calls.creations, kopf.ID("create_example"))
	operators.Start(t, config, in, registry)
	for round, name := range []string{"first", "second"} {
		crd := testenv.Definition(group, "lates", "Late", "v1")
		g.Expect(admin(t).Create(t.Context(), crd)).To(gomega.Succeed())
		create(t, g, objectOf(group, "Late", in, name))
		g.Eventually(calls.all).Should(gomega.HaveLen(round + 1))
		g.Expect(calls.all()).To(gomega.ContainElement(in + "/" + name))
		g.Eventually(names.Len).Should(gomega.Equal(1))
		g.Expect(admin(t).Delete(t.Context(), crd)).To(gomega.Succeed())
		g.Eventually(stopped).Should(gomega.Receive(gomega.Equal(name)))
		g.Eventually(names.Len).Should(gomega.BeZero())
		g.Eventually(func() error {
			return client.IgnoreNotFound(admin(t).Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
		}).Should(gomega.Succeed())
		g.Eventually(func() bool { return admin(t).Get(t.Context(), client.ObjectKeyFromObject(crd), crd) != nil }).Should(gomega.BeTrue())
	}
}

func TestAddedVersionIsWatched(t *testing.T) {
	t.Parallel()
	g, calls, registry := gomega.NewWithT(t), &calls{}, kopf.NewRegistry()
	in := cluster.Namespace(t)
	group := in + ".example.com"
	created := kopf.Resource(group, "grows")
	g.Expect(admin(t).Create(t.Context(), testenv.Definition(group, "grows", "Grow", "v1"))).To(gomega.Succeed())
	registry.OnCreate(created, calls.creations, kopf.ID("create"))
	registry.OnUpdate(created, func(_ context.Context, c *kopf.Change) error {
		calls.note("%s %s", c.Name(), c.Resource().Version)
		return nil
	}, kopf.ID("update"))
	operators.Start(t, cluster.Config(), in, registry)
	one := objectOf(group, "Grow", in, "one")
	create(t, g, one)
	g.Eventually(calls.all).Should(gomega.Equal([]string{in + "/one"}))

	crd := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(admin(t).Get(t.Context(), client.ObjectKey{Name: "grows." + group}, crd)).To(gomega.Succeed())
	second := crd.Spec.Versions[0]
	second.Name, second.Storage = "v2", false
	crd.Spec.Versions = append(crd.Spec.Versions, second)
	g.Expect(admin(t).Update(t.Context(), crd)).To(gomega.Succeed())
	g.Eventually(func() []string { // until the change of versions is effective
		later := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"at":%q}}`, time.Now()))
		g.Expect(client.IgnoreNotFound(cluster.Client().Patch(t.Context(), objectOf(group, "Grow", in, "one"), later))).To(gomega.Succeed())
		return calls.all()
	}, "30s", "300ms").Should(gomega.ContainElement("one v2"))
	all := calls.all()
	g.Expect(all[1:]).NotTo(gomega.ContainElement(in+"/one"), "created once")
	g.Expect(slices.IsSorted(all[1:])).To(gomega.BeTrue(), "the versions do not alternate: %v", all)
}

// ours are the permissions for only the objects.
func ours(group string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"kopf.dev", group}, Resources: []string{"kopfexamples", "lates"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

func TestOperatorWorksWithoutPermissionToScan(t *testing.T) {
	t.Parallel()
	g, calls, logs, registry := gomega.NewWithT(t), &calls{}, &calls{}, kopf.NewRegistry()
	in, other := cluster.Namespace(t), cluster.Namespace(t)
	group := in + ".example.com"
	config := account(t, g, in, ours(group)...)
	registry.OnCreate(examples, calls.creations, kopf.ID("create"))
	registry.OnCreate(kopf.Resource(group, "lates"), calls.creations, kopf.ID("create_late"))
	operators.Start(t, config, "", registry, scope(in, other+"*"), func(o *kopf.Options) {
		o.Logger, o.Settings.Scanning.Interval = logs.logger(), time.Second
	})
	create(t, g, objectOf("kopf.dev", "KopfExample", in, "one"))
	create(t, g, objectOf("kopf.dev", "KopfExample", other, "one"))
	g.Eventually(calls.all).Should(gomega.Equal([]string{in + "/one"}))
	g.Expect(logs.with("Namespaces may not be watched")).To(gomega.Equal(1), "%v", logs.all())
	g.Expect(logs.with("Custom resource definitions may not be watched")).To(gomega.Equal(1))

	g.Expect(admin(t).Create(t.Context(), testenv.Definition(group, "lates", "Late", "v1"))).To(gomega.Succeed())
	create(t, g, objectOf(group, "Late", in, "two"))
	g.Eventually(calls.all).Should(gomega.Equal([]string{in + "/one", in + "/two"}))
	g.Expect(logs.with("may not be watched")).To(gomega.Equal(2))
	g.Expect(logs.with("forbidden")).To(gomega.BeZero(), "%v", logs.all())

	// Later permissions are used without a restart.
	role := &rbacv1.ClusterRole{}
	g.Expect(admin(t).Get(t.Context(), client.ObjectKey{Name: "operator-" + in}, role)).To(gomega.Succeed())
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}})
	g.Expect(admin(t).Update(t.Context(), role)).To(gomega.Succeed())
	g.Eventually(calls.all).Should(gomega.Equal([]string{in + "/one", in + "/two", other + "/one"}))
}

func TestScanningCanBeDisabled(t *testing.T) {
	t.Parallel()
	g, calls, logs, registry, config := gomega.NewWithT(t), &calls{}, &calls{}, kopf.NewRegistry(), cluster.Config()
	in := cluster.Namespace(t)
	group := in + ".example.com"
	registry.OnCreate(kopf.Resource(group, "lates"), calls.creations, kopf.ID("create_late"))
	registry.OnCreate(examples, calls.creations, kopf.ID("create"))
	requests := testenv.Count(config)
	operators.Start(t, config, in, registry, func(o *kopf.Options) {
		o.Logger, o.Settings.Scanning.Disabled, o.Settings.Scanning.Interval = logs.logger(), true, time.Millisecond
	})
	g.Expect(admin(t).Create(t.Context(), testenv.Definition(group, "lates", "Late", "v1"))).To(gomega.Succeed())
	create(t, g, objectOf(group, "Late", in, "late"))
	create(t, g, objectOf("kopf.dev", "KopfExample", in, "one"))
	g.Eventually(calls.all).Should(gomega.Equal([]string{in + "/one"}))
	g.Consistently(calls.all, "500ms").Should(gomega.HaveLen(1))
	g.Expect(logs.with("selects nothing", "operator is restarted")).To(gomega.Equal(1), "%v", logs.all())
	for _, request := range requests.Requests() {
		g.Expect(request.Resource).NotTo(gomega.BeElementOf("namespaces", "customresourcedefinitions", "selfsubjectaccessreviews"))
	}
}

// While a definition waits for its objects, discovery offers only to read and to delete them. The
// deletion handlers are called nevertheless, with retries, also by an operator that starts then.
func TestDefinitionIsServedUntilItsLastObjectIsGone(t *testing.T) {
	for name, late := range map[string]bool{"by a running operator": false, "by an operator that starts afterwards": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, calls, registry := gomega.NewWithT(t), &calls{}, kopf.NewRegistry()
			in := cluster.Namespace(t)
			group := in + ".example.com"
			crd := testenv.Definition(group, "wanes", "Wane", "v1")
			g.Expect(admin(t).Create(t.Context(), crd)).To(gomega.Succeed())
			registry.OnDelete(kopf.Resource(group, "wanes"), func(_ context.Context, c *kopf.Change) error {
				calls.note("%s %d", c.Name(), c.Retry())
				if c.Retry() == 0 {
					return kopf.Temporary(errors.New("not yet"), 4*time.Second)
				}
				return nil
			}, kopf.ID("clean"), kopf.Limit(1))
			const objects = 5
			for i := range objects {
				one := objectOf(group, "Wane", in, fmt.Sprint("wane-", i))
				if late { // an earlier operator has added its finalizer
					one.SetFinalizers([]string{"kopf.zalando.org/KopfFinalizerMarker"})
				}
				create(t, g, one)
			}
			if !late {
				operators.Start(t, cluster.Config(), in, registry)
				g.Eventually(func() bool {
					for i := range objects {
						current, err := cluster.Current(objectOf(group, "Wane", in, fmt.Sprint("wane-", i)))()
						if err != nil || len(current.GetFinalizers()) == 0 {
							return false
						}
					}
					return true
				}, "30s").Should(gomega.BeTrue())
			}
			g.Expect(admin(t).Delete(t.Context(), crd)).To(gomega.Succeed())
			if late {
				g.Eventually(func() bool {
					g.Expect(admin(t).Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(gomega.Succeed())
					return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
						return c.Type == apiextensionsv1.Terminating && c.Status == apiextensionsv1.ConditionTrue
					})
				}, "30s").Should(gomega.BeTrue())
				operators.Start(t, cluster.Config(), in, registry)
			}
			g.Eventually(func() bool {
				return apierrors.IsNotFound(admin(t).Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
			}, "60s").Should(gomega.BeTrue(), "the definition stays: %v", calls.all())
			g.Expect(calls.all()).To(gomega.HaveLen(2 * objects))
		})
	}
}

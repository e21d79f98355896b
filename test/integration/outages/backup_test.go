package outages

import (
	"context"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// outrun lets the cluster of the tests have higher versions than another one, also after the next changes of that.
func outrun(t *testing.T, other *testenv.Cluster) {
	t.Helper()
	const lead = 100
	ahead := 0
	for range 1000 {
		if order, err := resourceversion.CompareResourceVersion(latest(t, other), latest(t, cluster)); err == nil && order < 0 {
			ahead++
		}
		if ahead == lead {
			return
		}
		cluster.Namespace(t)
	}
	t.Fatal("the versions of the other cluster are too high")
}

// latest returns the version of a cluster.
func latest(t *testing.T, of *testenv.Cluster) string {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := of.Client().List(t.Context(), list, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	return list.ResourceVersion
}

// Another cluster takes the place of the first one, as one that was restored from a backup: its
// versions are lower. Whatever the operator knows of versions, it handles what is there now: objects,
// children, and definitions.
func TestClusterIsReplacedByABackup(t *testing.T) {
	second := testenv.Start(t, testenv.Options{})
	everything := func(testenv.Request) bool { return true }
	tests := map[string]struct {
		replace func(f *testenv.Faults, change func())
		prefix  string
	}{
		"after an outage": {func(f *testenv.Faults, change func()) {
			f.Begin(testenv.Refuse, everything)
			change()
			f.Heal()
		}, "outage"},
		"at once": {func(f *testenv.Faults, change func()) {
			change()
			f.Cut(everything)
		}, "once"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, namespace, logs, calls := gomega.NewWithT(t), cluster.Namespace(t), &operators.Journal{}, &operators.Calls{}
			g.Expect(second.Client().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(gomega.Succeed())
			address, config := testenv.Behind(t, cluster)
			faults := testenv.Strike(config)

			kexes, gadgets := kopf.Resource("kopf.dev", "v1", "kopfexamples"), kopf.Resource(test.prefix+".example.com", "v1", "gadgets")
			r := kopf.NewRegistry()
			created := func(_ context.Context, c *kopf.Change) error {
				calls.Note("created %s %s", c.Name(), c.UID())
				return nil
			}
			r.OnCreate(kexes, created, kopf.ID("create"))
			r.OnCreate(gadgets, created, kopf.ID("create"))
			r.OnUpdate(kexes, func(_ context.Context, c *kopf.Change) error {
				calls.Note("updated %s", c.Name())
				return nil
			}, kopf.ID("update"))
			r.Daemon(kexes, func(_ context.Context, task *kopf.Task) error {
				calls.Note("started %s %s", task.Name(), task.UID())
				<-task.Stopped()
				calls.Note("stopped %s %s", task.Name(), task.UID())
				return nil
			}, kopf.ID("daemon"))
			r.Ensure(kexes, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
				return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name()}}}, nil
			}, kopf.ID("children"))
			operators.Start(t, config, namespace, r, func(o *kopf.Options) { o.Logger, o.Settings.Name = logs.Logger(), "restored" })

			create := func(in *testenv.Cluster, names ...string) (uids []string) {
				for _, name := range names {
					object := testenv.NewObject("KopfExample", namespace, name, map[string]any{})
					g.Expect(in.Client().Create(t.Context(), object)).To(gomega.Succeed())
					uids = append(uids, name+" "+string(object.GetUID()))
				}
				return uids
			}
			handled := func(in *testenv.Cluster, objects []string) {
				t.Helper()
				for _, one := range objects {
					g.Eventually(calls.All).Should(gomega.ContainElements("created "+one, "started "+one), logs.String())
					name, _, _ := strings.Cut(one, " ")
					g.Eventually(func() error {
						return in.Client().Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &corev1.ConfigMap{})
					}).Should(gomega.Succeed(), logs.String())
				}
			}
			after := create(second, "same", "new")
			outrun(t, second)
			before := create(cluster, "same", "gone")
			handled(cluster, before)
			test.replace(faults, func() { address.Switch(t, second) })
			handled(second, after)
			g.Eventually(calls.All).Should(gomega.ContainElements("stopped "+before[0], "stopped "+before[1]), logs.String)
			handled(second, create(second, "later"))
			object := testenv.NewObject("KopfExample", namespace, "new", nil)
			g.Expect(second.Client().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"a":1}}`)))).To(gomega.Succeed())
			g.Eventually(calls.All).Should(gomega.ContainElement("updated new"), logs.String())
			g.Expect(second.Client().Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new"}})).To(gomega.Succeed())
			handled(second, after[1:]) // the child is back

			g.Expect(second.Client().Create(t.Context(), testenv.Definition(test.prefix+".example.com", "gadgets", "Gadget", "v1"))).To(gomega.Succeed())
			gadget := &unstructured.Unstructured{}
			gadget.SetAPIVersion(test.prefix + ".example.com/v1")
			gadget.SetKind("Gadget")
			gadget.SetNamespace(namespace)
			gadget.SetName("gadget")
			g.Eventually(func() error { return second.Client().Create(t.Context(), gadget.DeepCopy()) }).Should(gomega.Succeed())
			g.Eventually(func() []string { return calls.Of("created") }).Should(gomega.ContainElement(gomega.HavePrefix("created gadget ")), logs.String())
			g.Expect(logs.With("The versions of the objects have gone back")).To(gomega.HaveLen(2), logs.String()) // objects and children
		})
	}
}

package replicas

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// Two operators in one namespace have different leases if they have names. Without names, the
// log says why one of them could stand by forever. The writes of each carry its name.
func TestNamesKeepOperatorsApart(t *testing.T) {
	t.Parallel()
	g, namespace := gomega.NewWithT(t), cluster.Namespace(t)
	run := func(name string) *operators.Journal {
		r, log := kopf.NewRegistry(), &operators.Journal{}
		r.OnCreate(kopf.Resource("kopfexamples"), func(context.Context, *kopf.Change) error { return nil },
			kopf.ID("fn"), kopf.Labels(map[string]kopf.Matcher{"for": kopf.Equal(name)}))
		o := operators.Start(t, cluster.Config(), namespace, r, func(o *kopf.Options) {
			o.Logger, o.Settings.Name = log.Logger(), name
			o.Settings.Replicas.LeaderElection, o.Settings.Replicas.LeaseNamespace = true, namespace
		})
		t.Cleanup(o.Stop)
		return log
	}
	logs := map[string]*operators.Journal{"": run(""), "one.example.com": run("one.example.com"), "two.example.com": run("two.example.com")}
	for name, log := range logs {
		g.Eventually(func() []string { return log.With("This replica is the leader") }).Should(gomega.HaveLen(1), name)
		g.Expect(log.With("The lease has the default name.")).To(gomega.HaveLen(map[bool]int{true: 1, false: 0}[name == ""]), name)
	}
	for name, manager := range map[string]string{"": "kopf", "one.example.com": "one.example.com"} {
		object := testenv.NewObject("KopfExample", namespace, "for-"+manager, nil)
		object.SetLabels(map[string]string{"for": name})
		g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
		g.Eventually(cluster.Current(object)).Should(gomega.WithTransform(managers, gomega.ContainElement(manager)))
		for other := range logs {
			if other != name && other != "" {
				g.Expect(cluster.Current(object)()).NotTo(gomega.WithTransform(managers, gomega.ContainElement(other)))
			}
		}
	}
}

// managers returns the field managers of an object.
func managers(object *unstructured.Unstructured) (names []string) {
	for _, entry := range object.GetManagedFields() {
		names = append(names, entry.Manager)
	}
	return names
}

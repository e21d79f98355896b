package webhooks

import (
	"testing"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
)

// A killed operator leaves its webhooks: the failure policy of the handlers decides
// what is admitted.
func TestFailurePolicyWhileTheOperatorIsDown(t *testing.T) {
	tests := map[string]struct {
		ignoreFailures bool
		matcher        gomega.OmegaMatcher
	}{
		"nothing, by default":                 {false, gomega.MatchError(gomega.ContainSubstring("failed calling webhook"))},
		"everything, if failures are ignored": {true, gomega.Succeed()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, namespace := gomega.NewWithT(t), cluster.Namespace(t)
			o := run(t, cluster.Config(), local(t), managed("down.kopf.dev"), configurations.Hook{
				ID: "a", Validating: true, Resource: configMaps, IgnoreFailures: test.ignoreFailures,
				LabelSelector: nil,
			})
			g.Eventually(names(t, "down.kopf.dev")).Should(gomega.HaveLen(1))
			denied := func() error { return try(t.Context(), namespace, "denied") }
			g.Eventually(denied).Should(gomega.MatchError(gomega.ContainSubstring("denied the request")))
			o.kill()
			g.Expect(denied()).To(test.matcher)
		})
	}
}

// A killed operator can be started again: it is not called for what it needs for that,
// whatever its handlers are declared for.
func TestOperatorDoesNotLockItselfOut(t *testing.T) {
	g, c := gomega.NewWithT(t), cluster.Client()
	own, other := cluster.Namespace(t), cluster.Namespace(t)
	lease := types.NamespacedName{Namespace: other, Name: "mine"}
	var hooks []configurations.Hook
	for _, resource := range []selector.Resource{
		configMaps, leases,
		{Group: "admissionregistration.k8s.io", Version: "v1", Plural: "validatingwebhookconfigurations"},
	} {
		hooks = append(hooks, configurations.Hook{ID: "everything", Validating: true, Resource: resource})
	}
	options := configurations.Options{Name: "down.kopf.dev", OwnNamespace: own, Lease: lease}
	o := run(t, cluster.Config(), local(t), options, hooks...)
	g.Eventually(names(t, "down.kopf.dev")).Should(gomega.HaveLen(1))
	g.Eventually(func() error { return try(t.Context(), other, "denied") }).ShouldNot(gomega.Succeed())
	o.kill()

	g.Expect(try(t.Context(), own, "denied")).To(gomega.Succeed(), "its namespace")
	g.Expect(try(t.Context(), other, "a")).To(gomega.MatchError(gomega.ContainSubstring("failed calling webhook")))
	create := func(name string) error {
		return c.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: name}}, client.DryRunAll)
	}
	g.Expect(create("mine")).To(gomega.Succeed(), "its lease")
	g.Expect(create("theirs")).To(gomega.MatchError(gomega.ContainSubstring("failed calling webhook")))

	again := run(t, cluster.Config(), local(t), options, hooks...)
	g.Eventually(func() error { return try(t.Context(), other, "a") }).Should(gomega.Succeed(), "its configuration: %v", again.logged())
	again.stop()
	g.Expect(names(t, "down.kopf.dev")()).To(gomega.BeEmpty())
}

package webhooks

import (
	"testing"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/webhook/configurations"
)

// The log names the field manager that has changed the webhooks.
func TestFieldManagerOfAChangeIsLogged(t *testing.T) {
	g, c := gomega.NewWithT(t), cluster.Client()
	check := configurations.Hook{ID: "check", Validating: true, Resource: configMaps, IgnoreFailures: true}
	o := run(t, cluster.Config(), local(t), managed("contended.kopf.dev"), check)
	g.Eventually(names(t, "contended.kopf.dev")).Should(gomega.HaveLen(1))
	g.Eventually(o.logged).Should(gomega.ContainElement(gomega.ContainSubstring(`The cluster calls the admission handlers." "configuration"="contended.kopf.dev"`)))

	object := validating("contended.kopf.dev")
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
	ours := *object.Webhooks[0].ClientConfig.URL
	object.Webhooks[0].ClientConfig.URL = new("https://localhost:1/theirs")
	g.Expect(c.Update(t.Context(), object, client.FieldOwner("another-client"))).To(gomega.Succeed())
	o.SetHooks([]configurations.Hook{check}) // wakes the leader without a change
	g.Eventually(o.logged).Should(gomega.ContainElement(gomega.MatchRegexp(
		`Another client has changed the webhooks .*"configuration"="contended.kopf.dev" "kind"="ValidatingWebhookConfiguration" "by"="another-client" "at"="2`)))
	g.Eventually(func(g gomega.Gomega) {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
		g.Expect(object.Webhooks[0].ClientConfig.URL).To(gomega.HaveValue(gomega.Equal(ours)))
	}).Should(gomega.Succeed())
}

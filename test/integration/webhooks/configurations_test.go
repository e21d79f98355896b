package webhooks

import (
	"context"
	"net/http"
	"testing"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/webhook/configurations"
	"github.com/kopf-go/kopf/test/testenv"
)

func managed(name string) configurations.Options { return configurations.Options{Name: name} }

// creations counts the configurations that were created.
func creations(s testenv.Snapshot) int {
	return s[testenv.Key{Method: http.MethodPost, Target: "validatingwebhookconfigurations"}] +
		s[testenv.Key{Method: http.MethodPost, Target: "mutatingwebhookconfigurations"}]
}

// reads counts the reads of configurations.
func reads(s testenv.Snapshot) int {
	return s[testenv.Key{Method: http.MethodGet, Target: "validatingwebhookconfigurations"}] +
		s[testenv.Key{Method: http.MethodGet, Target: "mutatingwebhookconfigurations"}]
}

// changes counts the changes of configurations.
func changes(s testenv.Snapshot) int {
	return s.Writes("validatingwebhookconfigurations") + s.Writes("mutatingwebhookconfigurations")
}

func TestConfigurationsAreCreatedUpdatedAndCleanedUp(t *testing.T) {
	g, config := gomega.NewWithT(t), cluster.Config()
	requests := testenv.Count(config)
	namespace := cluster.Namespace(t)
	check := configurations.Hook{ID: "checkIt", Validating: true, Resource: configMaps}
	relabel := configurations.Hook{ID: "relabel", Resource: configMaps, Operations: []string{"CREATE"}}
	always := configurations.Hook{ID: "always", Resource: configMaps, Persistent: true, IgnoreFailures: true}
	o := run(t, config, local(t), managed("both.kopf.dev"), check, relabel, always)

	g.Eventually(names(t, "both.kopf.dev")).Should(gomega.ConsistOf(
		"validating checkit.both.kopf.dev", "mutating relabel.both.kopf.dev", "mutating always.both.kopf.dev",
	), "%v", o.logged())
	g.Eventually(func() int { return creations(requests.Snapshot()) }).Should(gomega.Equal(2))
	g.Expect(changes(requests.Snapshot())).To(gomega.BeZero())
	g.Eventually(func() error { return try(t.Context(), namespace, "denied") }).Should(
		gomega.MatchError(gomega.ContainSubstring(`admission webhook`)))
	g.Expect(try(t.Context(), namespace, "fine")).To(gomega.Succeed())

	// The same hooks are not written again.
	read := reads(requests.Snapshot())
	o.SetHooks([]configurations.Hook{check, relabel, always})
	g.Eventually(func() int { return reads(requests.Snapshot()) }).Should(gomega.Equal(read + 2))
	g.Expect(changes(requests.Snapshot())).To(gomega.BeZero(), "%s", requests)

	// A new resource and a removed handler are one write each.
	o.SetHooks([]configurations.Hook{relabel, always, {ID: "relabel", Resource: leases, Operations: []string{"CREATE"}}})
	g.Eventually(names(t, "both.kopf.dev")).Should(gomega.ConsistOf("mutating relabel.both.kopf.dev", "mutating always.both.kopf.dev"))
	g.Eventually(func() int { return changes(requests.Snapshot()) }).Should(gomega.Equal(2), "%s", requests)

	o.SetHooks([]configurations.Hook{check, relabel, always})
	g.Eventually(func() int { return changes(requests.Snapshot()) }).Should(gomega.Equal(4))
	o.stop()
	g.Expect(names(t, "both.kopf.dev")()).To(gomega.ConsistOf("mutating always.both.kopf.dev"))
	g.Eventually(func() int { return changes(requests.Snapshot()) }).Should(gomega.Equal(6))
	g.Expect(try(t.Context(), namespace, "denied")).To(gomega.Succeed(), "the webhook is removed")
}

// The paths and names of all ids are accepted, for services too.
func TestKubernetesAcceptsThePathsOfServices(t *testing.T) {
	g, c := gomega.NewWithT(t), cluster.Client()
	var hooks []configurations.Hook
	for _, id := range []string{"checkIt", "check_it", "check it", "_a/-b", "checkIt/spec.nodeName", "я", "CHECKIT"} {
		for _, validating := range []bool{true, false} {
			hooks = append(hooks, configurations.Hook{ID: id, Validating: validating, Resource: configMaps, Subresource: "*", IgnoreFailures: true})
		}
	}
	m := configurations.NewManager(c, configurations.Options{Name: "service", OwnNamespace: "operators"}, new(operator).logger())
	m.SetHooks(hooks)
	t.Cleanup(func() { remove(t, "service") })
	lead(t, m)
	g.Expect(m.Publish(t.Context(), admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "operators", Name: "webhooks", Path: new("/base")},
	})).To(gomega.Succeed())
	g.Eventually(names(t, "service")).Should(gomega.HaveLen(14))
}

// lead makes a manager without a server the leader until the end of the test.
func lead(t *testing.T, m *configurations.Manager) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	led := make(chan struct{})
	go func() { defer close(led); m.RunLeader(ctx) }()
	t.Cleanup(func() { stop(); <-led })
}

func TestOtherConfigurationsAndMetadataAreLeftAlone(t *testing.T) {
	g, c := gomega.NewWithT(t), cluster.Client()
	theirs := validating("theirs.kopf.dev")
	theirs.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
		Name: "one.theirs.kopf.dev", SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://localhost/")},
	}}
	ours := validating("ours.kopf.dev")
	ours.Labels, ours.Annotations = map[string]string{"team": "a"}, map[string]string{"note": "b"}
	for _, object := range []client.Object{theirs, ours} {
		g.Expect(c.Create(t.Context(), object)).To(gomega.Succeed())
	}
	t.Cleanup(func() { remove(t, "theirs.kopf.dev") })
	before := theirs.ResourceVersion
	o := run(t, cluster.Config(), local(t), managed("ours.kopf.dev"), configurations.Hook{ID: "a", Validating: true, Resource: configMaps})
	g.Eventually(names(t, "ours.kopf.dev")).Should(gomega.HaveLen(1))
	o.stop()
	for _, object := range []client.Object{theirs, ours} {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
	}
	g.Expect(theirs.ResourceVersion).To(gomega.Equal(before))
	g.Expect(ours.Webhooks).To(gomega.BeEmpty())
	g.Expect(ours.Labels).To(gomega.Equal(map[string]string{"team": "a"}))
	g.Expect(ours.Annotations).To(gomega.Equal(map[string]string{"note": "b"}))
}

func TestCABundleOfCertManagerIsKept(t *testing.T) {
	g, c, config := gomega.NewWithT(t), cluster.Client(), cluster.Config()
	requests := testenv.Count(config)
	object := mutating("injected.kopf.dev")
	object.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "ns/certificate"}
	g.Expect(c.Create(t.Context(), object)).To(gomega.Succeed())
	o := run(t, config, local(t), managed("injected.kopf.dev"), configurations.Hook{ID: "a", Resource: configMaps, IgnoreFailures: true})
	g.Eventually(names(t, "injected.kopf.dev")).Should(gomega.HaveLen(1))
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
	g.Expect(object.Webhooks[0].ClientConfig.CABundle).To(gomega.BeEmpty(), "the operator's bundle is not written")

	bundle := bundleOf(t) // cert-manager injects it
	object.Webhooks[0].ClientConfig.CABundle = bundle
	g.Expect(c.Update(t.Context(), object)).To(gomega.Succeed())
	o.SetHooks([]configurations.Hook{{ID: "a", Resource: configMaps, IgnoreFailures: true}, {ID: "b", Resource: configMaps, IgnoreFailures: true}})
	g.Eventually(names(t, "injected.kopf.dev")).Should(gomega.HaveLen(2))
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
	for _, webhook := range object.Webhooks {
		g.Expect(webhook.ClientConfig.CABundle).To(gomega.Equal(bundle))
	}
	g.Eventually(func() int { return changes(requests.Snapshot()) }).Should(gomega.Equal(2), "%s", requests)
}

func TestMissingPermissionIsExplained(t *testing.T) {
	g, config := gomega.NewWithT(t), cluster.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "nobody"}
	o := run(t, config, local(t), managed("forbidden.kopf.dev"), configurations.Hook{ID: "a", Validating: true, Resource: configMaps})
	g.Eventually(o.logged).Should(gomega.ContainElement(gomega.ContainSubstring("allow its service account to get, create and patch validatingwebhookconfigurations")))
	g.Expect(names(t, "forbidden.kopf.dev")()).To(gomega.BeEmpty())
}

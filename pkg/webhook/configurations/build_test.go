package configurations

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

var leases = selector.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases"}

func TestHooksOfOneHandlerAreOneWebhook(t *testing.T) {
	g := gomega.NewWithT(t)
	validating, mutating := Build([]Hook{
		hook("a"), hook("b"), hook("a", func(h *Hook) { h.Resource = leases }), hook("a"),
		hook("a", func(h *Hook) { h.Validating = false }),
		hook("a", func(h *Hook) { h.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}} }),
	}, at("https://h/"), managed)
	g.Expect(mutating).To(gomega.HaveLen(1))
	g.Expect(validating).To(gomega.HaveExactElements(
		gomega.And(gomega.HaveField("Name", "a.auto.kopf.dev"), gomega.HaveField("Rules", gomega.HaveLen(2))),
		gomega.HaveField("Name", "b.auto.kopf.dev"),
		gomega.And(gomega.HaveField("Name", "a-2.auto.kopf.dev"), gomega.HaveField("ClientConfig.URL", gomega.HaveValue(gomega.Equal("https://h/a")))),
	))
}

func TestExclusions(t *testing.T) {
	lease := types.NamespacedName{Namespace: "operators", Name: "mine"}
	deployed := settings.Settings{Admission: settings.Admission{Managed: "auto.kopf.dev"}}
	including, scoped, elsewhere, patterns := deployed, deployed, deployed, deployed
	including.Admission.IncludeOwnNamespace = true
	scoped.Scope.Namespaces = []string{"operators"}
	elsewhere.Scope.Namespaces = []string{"a", "b"}
	patterns.Scope.Namespaces = []string{"a", "b-*"}
	tests := map[string]struct {
		options                          Options
		resource                         selector.Resource
		excludesNamespace, excludesLease bool
	}{
		"in the cluster":                      {OptionsFor(deployed, "operators", lease), examples, true, false},
		"in the cluster, for leases":          {OptionsFor(deployed, "operators", lease), leases, true, false},
		"including its namespace":             {OptionsFor(including, "operators", lease), examples, false, false},
		"including its namespace, for leases": {OptionsFor(including, "operators", lease), leases, false, true},
		"serving its namespace":               {OptionsFor(scoped, "operators", lease), leases, true, true},
		"serving other namespaces":            {OptionsFor(elsewhere, "operators", lease), leases, true, false},
		"serving patterns of namespaces":      {OptionsFor(patterns, "", lease), examples, false, false},
		"outside of the cluster":              {OptionsFor(deployed, "", lease), examples, false, false},
		"outside of the cluster, for leases":  {OptionsFor(deployed, "", lease), leases, false, true},
		"outside, without a lease":            {OptionsFor(deployed, "", types.NamespacedName{}), leases, false, false},
		"with a lease in another namespace":   {OptionsFor(deployed, "other", lease), leases, true, true},
		"without options of an operator":      {managed, leases, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			webhooks, _ := Build([]Hook{hook("a", func(h *Hook) { h.Resource = test.resource })}, at("https://h/"), test.options)
			g.Expect(webhooks[0].NamespaceSelector != nil).To(gomega.Equal(test.excludesNamespace))
			g.Expect(webhooks[0].MatchConditions).To(gomega.HaveLen(map[bool]int{false: 0, true: 1}[test.excludesLease]))
		})
	}
}

func TestServedNamespacesAreSelected(t *testing.T) {
	g := gomega.NewWithT(t)
	s := settings.Settings{Scope: settings.Scope{Namespaces: []string{"b", "a"}}}
	webhooks, _ := Build([]Hook{hook("a")}, at("https://h/"), OptionsFor(s, "operators", types.NamespacedName{}))
	g.Expect(webhooks[0].NamespaceSelector.MatchExpressions).To(gomega.ConsistOf(
		metav1.LabelSelectorRequirement{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}))
}

func TestTimeoutSeconds(t *testing.T) {
	for timeout, want := range map[time.Duration]int32{0: 30, 5 * time.Second: 5} {
		options := OptionsFor(settings.Settings{Admission: settings.Admission{Timeout: timeout}}, "", types.NamespacedName{})
		webhooks, _ := Build([]Hook{hook("a")}, at("https://h/"), options)
		gomega.NewWithT(t).Expect(webhooks[0].TimeoutSeconds).To(gomega.HaveValue(gomega.Equal(want)))
	}
}

func TestRoutedRequestsReachTheirHandlers(t *testing.T) {
	g, c := gomega.NewWithT(t), newCluster()
	m := NewManager(c, managed, c.logger())
	hooks := []Hook{hook("checkIt/spec.nodeName"), hook("check"), hook("check it")}
	m.SetHooks(hooks)
	var called string
	handler := m.Route(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { called = r.URL.Path }))
	for _, config := range []admissionregistrationv1.WebhookClientConfig{at("https://h"), {Service: &admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "svc"}}} {
		webhooks, _ := Build(hooks, config, managed)
		for i, webhook := range webhooks {
			address := ptr.Deref(webhook.ClientConfig.URL, "")
			if webhook.ClientConfig.Service != nil {
				address = "https://svc.ns.svc" + *webhook.ClientConfig.Service.Path
			}
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, address, nil))
			g.Expect(called).To(gomega.Equal("/"+hooks[i].ID), address)
		}
	}
}

func TestManifest(t *testing.T) {
	g := gomega.NewWithT(t)
	manifest, err := Manifest([]Hook{hook("a"), hook("b", func(h *Hook) { h.Validating = false })}, nil, at("https://h/"), Options{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(string(manifest)).To(gomega.And(
		gomega.ContainSubstring("kind: ValidatingWebhookConfiguration\nmetadata:\n  name: auto.kopf.dev\nwebhooks:\n- admissionReviewVersions:"),
		gomega.ContainSubstring("\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration"),
		gomega.ContainSubstring("url: https://h/a\n"),
	))
}

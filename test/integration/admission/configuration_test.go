package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// hook is one webhook of a configuration that is written by hand.
type hook struct {
	path      string // below the operator's URL: the id of a handler
	resources string // "apps/v1/deployments/scale"; default: the examples
	// operations are all except CONNECT by default, which few resources have.
	operations  []admissionregistrationv1.OperationType
	selector    *metav1.LabelSelector
	ignore      bool
	sideEffects bool
}

const (
	probeLabel = "probe"
	probePath  = "rejectProbe"
)

// rejectProbe rejects probes, which shows that the API server uses a configuration.
func rejectProbe(context.Context, *kopf.Admission) error { return kopf.Reject("this is a probe", 418) }

// validating installs validating webhooks, and waits until the API server uses them.
func (o *operator) validating(t *testing.T, hooks ...hook) {
	t.Helper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}}
	for i, h := range append(hooks, hook{path: probePath}) {
		configuration.Webhooks = append(configuration.Webhooks, o.webhook(i, h))
	}
	o.install(t, configuration)
}

// mutating installs mutating webhooks, and waits until the API server uses them.
func (o *operator) mutating(t *testing.T, hooks ...hook) {
	t.Helper()
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}}
	for i, h := range append(hooks, hook{path: probePath}) {
		w := o.webhook(i, h)
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector,
			SideEffects: w.SideEffects, FailurePolicy: w.FailurePolicy, AdmissionReviewVersions: w.AdmissionReviewVersions,
		})
	}
	o.install(t, configuration)
}

func (o *operator) webhook(number int, h hook) admissionregistrationv1.ValidatingWebhook {
	path := strings.Split(h.resources, "/")
	if h.resources == "" {
		path = []string{"kopf.dev", "v1", "kopfexamples"}
	}
	operations := h.operations
	if operations == nil {
		operations = []admissionregistrationv1.OperationType{"CREATE", "UPDATE", "DELETE"}
	}
	failure, effects := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	if h.ignore {
		failure = admissionregistrationv1.Ignore
	}
	if h.sideEffects {
		effects = admissionregistrationv1.SideEffectClassNoneOnDryRun
	}
	return admissionregistrationv1.ValidatingWebhook{
		Name:         fmt.Sprintf("%s-%d.admission.kopf.dev", strings.ToLower(h.path), number),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new(o.url + "/" + h.path), CABundle: o.ca},
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: operations, Rule: admissionregistrationv1.Rule{
			APIGroups: path[:1], APIVersions: path[1:2], Resources: []string{strings.Join(path[2:], "/")},
		}}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: o.namespace}},
		ObjectSelector:    h.selector, FailurePolicy: &failure, SideEffects: &effects,
		AdmissionReviewVersions: []string{"v1"},
	}
}

func (o *operator) install(t *testing.T, configuration client.Object) {
	t.Helper()
	g := gomega.NewWithT(t)
	g.Expect(cluster.Client().Create(t.Context(), configuration)).To(gomega.Succeed())
	t.Cleanup(func() { _ = cluster.Client().Delete(context.Background(), configuration) })
	g.Eventually(func() error {
		probe := o.object("probe", nil)
		probe.SetLabels(map[string]string{probeLabel: "yes"})
		return cluster.Client().Create(t.Context(), probe, client.DryRunAll)
	}).Should(haveCode(418, "this is a probe"))
	g.Expect(cluster.Exists(o.object("probe", nil))()).To(gomega.BeFalse())
}

// object returns an example in the namespace of the operator.
func (o *operator) object(name string, spec map[string]any) *unstructuredObject {
	return testenv.NewObject("KopfExample", o.namespace, name, spec)
}

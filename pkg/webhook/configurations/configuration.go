package configurations

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// configuration is a configuration of either kind. The webhooks of the two kinds differ
// in one field, which is not used here: so both are read and written as validating ones.
type configuration interface {
	kind() string
	object() client.Object
	webhooks() []admissionregistrationv1.ValidatingWebhook
	setWebhooks(webhooks []admissionregistrationv1.ValidatingWebhook)
}

const (
	kindValidating = "ValidatingWebhookConfiguration"
	kindMutating   = "MutatingWebhookConfiguration"
)

type (
	validating struct {
		admissionregistrationv1.ValidatingWebhookConfiguration
	}
	mutating struct {
		admissionregistrationv1.MutatingWebhookConfiguration
	}
)

func newValidating(name string) configuration {
	return &validating{admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: typeMeta(kindValidating), ObjectMeta: metav1.ObjectMeta{Name: name},
	}}
}

func newMutating(name string) configuration {
	return &mutating{admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta: typeMeta(kindMutating), ObjectMeta: metav1.ObjectMeta{Name: name},
	}}
}

// typeMeta returns the type, which only manifests need.
func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
}

func (v *validating) kind() string { return kindValidating }

func (v *validating) object() client.Object { return &v.ValidatingWebhookConfiguration }

func (v *validating) webhooks() []admissionregistrationv1.ValidatingWebhook { return v.Webhooks }

func (v *validating) setWebhooks(webhooks []admissionregistrationv1.ValidatingWebhook) {
	v.Webhooks = webhooks
}

func (m *mutating) kind() string { return kindMutating }

func (m *mutating) object() client.Object { return &m.MutatingWebhookConfiguration }

func (m *mutating) webhooks() []admissionregistrationv1.ValidatingWebhook {
	var all []admissionregistrationv1.ValidatingWebhook
	for _, w := range m.Webhooks {
		all = append(all, admissionregistrationv1.ValidatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
			TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
		})
	}
	return all
}

func (m *mutating) setWebhooks(webhooks []admissionregistrationv1.ValidatingWebhook) {
	m.Webhooks = nil
	for _, w := range webhooks {
		m.Webhooks = append(m.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
			TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
			ReinvocationPolicy: new(admissionregistrationv1.NeverReinvocationPolicy),
		})
	}
}

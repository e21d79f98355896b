package configurations

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// httpsPort is the default port of a service.
const httpsPort = 443

func isEqual(a, b any) bool { return apiequality.Semantic.DeepEqual(a, b) }

// withDefaults returns the webhooks with the defaults of the API server, as far as Build
// does not always set the fields.
func withDefaults(webhooks []admissionregistrationv1.ValidatingWebhook) []admissionregistrationv1.ValidatingWebhook {
	all := slices.Clone(webhooks)
	for i := range all {
		all[i] = *all[i].DeepCopy()
		if all[i].NamespaceSelector == nil {
			all[i].NamespaceSelector = &metav1.LabelSelector{}
		}
		if all[i].ObjectSelector == nil {
			all[i].ObjectSelector = &metav1.LabelSelector{}
		}
		if service := all[i].ClientConfig.Service; service != nil && service.Port == nil {
			service.Port = new(int32(httpsPort))
		}
	}
	return all
}

package configurations

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// httpsPort is what the API server takes when a service has no port.
const httpsPort = 443

func isEqual(a, b any) bool { return apiequality.Semantic.DeepEqual(a, b) }

// withDefaults is the webhook as the API server gives it back. What we always set
// ourselves has no default here.
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
			service.Port = ptr.To[int32](httpsPort)
		}
	}
	return all
}

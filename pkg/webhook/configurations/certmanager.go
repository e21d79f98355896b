package configurations

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// isInjectedByCertManager reports whether cert-manager injects the CA bundles into a
// configuration. Each of its annotations names another source of the CA.
func isInjectedByCertManager(annotations map[string]string) bool {
	for _, key := range []string{
		"cert-manager.io/inject-ca-from",
		"cert-manager.io/inject-ca-from-secret",
		"cert-manager.io/inject-apiserver-ca",
	} {
		if annotations[key] != "" {
			return true
		}
	}
	return false
}

// keepCABundles sets the CA bundle that is present. All bundles of cert-manager are the
// same, so a new webhook gets that of any other.
func keepCABundles(webhooks, present []admissionregistrationv1.ValidatingWebhook) {
	var bundle []byte
	for _, webhook := range present {
		if len(webhook.ClientConfig.CABundle) > 0 {
			bundle = webhook.ClientConfig.CABundle
			break
		}
	}
	for i := range webhooks {
		webhooks[i].ClientConfig.CABundle = bundle
	}
}

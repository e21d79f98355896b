package configurations

import (
	"bytes"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// unmanagedName is for manifests of configurations that have no name yet.
const unmanagedName = "auto.kopf.dev"

// Manifest is what a person applies where configurations are not managed: both of
// them, as far as they have webhooks, in YAML.
func Manifest(hooks []Hook, config admissionregistrationv1.WebhookClientConfig, options Options) ([]byte, error) {
	if options.Name == "" {
		options.Name = unmanagedName
	}
	forValidating, forMutating := Build(hooks, config, options)
	var documents [][]byte
	for _, part := range []struct {
		configuration
		webhooks []admissionregistrationv1.ValidatingWebhook
	}{
		{newValidating(options.Name), forValidating},
		{newMutating(options.Name), forMutating},
	} {
		if len(part.webhooks) == 0 {
			continue
		}
		part.setWebhooks(part.webhooks)
		document, err := yaml.Marshal(part.object())
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	return bytes.Join(documents, []byte("---\n")), nil
}

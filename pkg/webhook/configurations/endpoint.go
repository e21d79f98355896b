package configurations

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/settings"
)

// NewEndpoint returns an endpoint for the cluster of the configuration. Handler and
// Publish are missing. The client must not read from a cache.
func NewEndpoint(config *rest.Config, c client.Client) (settings.AdmissionEndpoint, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return settings.AdmissionEndpoint{}, fmt.Errorf("the connection to the cluster: %w", err)
	}
	url, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return settings.AdmissionEndpoint{}, fmt.Errorf("the connection to the cluster: %w", err)
	}
	return settings.AdmissionEndpoint{Client: c, HTTP: httpClient, URL: url.String()}, nil
}

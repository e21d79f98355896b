package operator

import (
	"cmp"
	"crypto/tls"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-go/kopf/pkg/health/access"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/settings"
)

// newMetrics registers the metrics of an operator in the registry of controller-runtime, so
// that the same servers serve both.
func newMetrics(s settings.Settings) (*metrics.Metrics, error) {
	return metrics.New(crmetrics.Registry, cmp.Or(s.Name, settings.DefaultName))
}

// metricsOptions returns the options for serving the metrics with the operator's own manager.
func metricsOptions(m settings.Metrics) metricsserver.Options {
	if m.Address == "" {
		return metricsserver.Options{BindAddress: "0"} // disabled
	}
	options := metricsserver.Options{BindAddress: m.Address, SecureServing: m.Secure}
	if m.Secure {
		options.FilterProvider = authorize
		options.TLSOpts = []func(*tls.Config){restrictTLS}
	}
	return options
}

// restrictTLS disables old versions of TLS and HTTP/2: a single occasional reader does not
// need many streams in one connection, which only enable attacks.
func restrictTLS(c *tls.Config) {
	c.MinVersion = tls.VersionTLS12
	c.NextProtos = []string{"http/1.1"}
}

// authorize serves the metrics only to clients that have permission in the cluster. Package
// access explains why this does not use the filter of controller-runtime.
func authorize(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	filter, err := access.New(config, httpClient)
	if err != nil {
		return nil, err
	}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) { return filter.Wrap(log, next), nil }, nil
}

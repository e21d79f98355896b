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

// newMetrics makes the metrics of an operator in the registry of controller-runtime:
// every server of the one serves the other.
func newMetrics(s settings.Settings) (*metrics.Metrics, error) {
	return metrics.New(crmetrics.Registry, cmp.Or(s.Name, settings.DefaultName))
}

// metricsOptions returns how the operator's own manager serves the metrics.
func metricsOptions(m settings.Metrics) metricsserver.Options {
	if m.Address == "" {
		return metricsserver.Options{BindAddress: "0"} // nowhere
	}
	options := metricsserver.Options{BindAddress: m.Address, SecureServing: m.Secure}
	if m.Secure {
		options.FilterProvider = authorize
		options.TLSOpts = []func(*tls.Config){restrictTLS}
	}
	return options
}

// restrictTLS permits neither old versions of TLS nor HTTP/2: with one reader that
// asks now and then, many streams in one connection are only a means of attack.
func restrictTLS(c *tls.Config) {
	c.MinVersion = tls.VersionTLS12
	c.NextProtos = []string{"http/1.1"}
}

// authorize serves the metrics to readers that the cluster permits to read them.
// Package access says why this is not the filter of controller-runtime.
func authorize(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	filter, err := access.New(config, httpClient)
	if err != nil {
		return nil, err
	}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) { return filter.Wrap(log, next), nil }, nil
}

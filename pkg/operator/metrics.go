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

// newMetrics makes the metrics of an operator, beside those of controller-runtime:
// whoever serves the ones serves the others.
func newMetrics(s settings.Settings) (*metrics.Metrics, error) {
	return metrics.New(crmetrics.Registry, cmp.Or(s.Name, settings.DefaultName))
}

// metricsOptions are how the manager of an operator serves all of them.
func metricsOptions(m settings.Metrics) metricsserver.Options {
	if m.Address == "" {
		return metricsserver.Options{BindAddress: "0"} // which is nowhere
	}
	options := metricsserver.Options{BindAddress: m.Address, SecureServing: m.Secure}
	if m.Secure {
		options.FilterProvider = permitted
		options.TLSOpts = []func(*tls.Config){strict}
	}
	return options
}

// strict allows no old versions of TLS, and no HTTP/2: one reader asks now and then,
// which is not worth the attacks that many streams in one connection make possible.
func strict(c *tls.Config) {
	c.MinVersion = tls.VersionTLS12
	c.NextProtos = []string{"http/1.1"}
}

// permitted lets those read whom the cluster permits it.
func permitted(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	guard, err := access.New(config, httpClient)
	if err != nil {
		return nil, err
	}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) { return guard.Wrap(log, next), nil }, nil
}

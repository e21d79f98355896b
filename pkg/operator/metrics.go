package operator

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/health/access"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
)

// newMetrics registers the metrics of an operator in the registry of controller-runtime, so
// that the same servers serve both.
func newMetrics(s settings.Settings) (*metrics.Metrics, error) {
	return metrics.New(crmetrics.Registry, operatorName(s))
}

// stateWith returns the state of the engine with that of the other components.
func stateWith(engine *reconcile.Engine, a *admission, recorder *events.Recorder) metrics.State {
	state := engine.State()
	posted := recorder.Stats()
	state.CertificateExpiry = a.certificateExpiry()
	state.Events = metrics.Events{
		Posted: posted.Posted, Suppressed: posted.Suppressed, Dropped: posted.Dropped, Failed: posted.Failed,
	}
	return state
}

// measureReview returns the function that counts the calls of admission handlers.
func measureReview(m *metrics.Metrics) func(d *handler.Declaration, err error, took time.Duration) {
	return func(d *handler.Declaration, err error, took time.Duration) {
		var rejection *handler.AdmissionError
		outcome := metrics.ReviewFailed
		switch {
		case err == nil:
			outcome = metrics.Admitted
		case errors.As(err, &rejection):
			outcome = metrics.Denied
		}
		m.Review(string(d.Kind), d.ID, outcome, took)
	}
}

// beginSeries begins the series of the admission handlers, so that the first failure is an
// increase.
func (a *admission) beginSeries(m *metrics.Metrics) {
	if a == nil {
		return
	}
	for _, d := range a.handlers {
		m.Reviewing(string(d.Kind), d.ID)
	}
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

// addActivity serves what the operator is doing, next to its metrics. Only clients that the cluster
// authorizes get it, because it has the names of objects: without that, there is no such endpoint.
// The manager of another program has its own metrics, and may not restrict access to them.
func (o *Operator) addActivity(mgr manager.Manager, engine *reconcile.Engine) error {
	m := engine.Settings.Metrics
	if o.inManager || m.Address == "" || !m.Secure {
		return nil
	}
	return mgr.AddMetricsServerExtraHandler(reconcile.ActivityPath, http.HandlerFunc(func(into http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		key := object.Key{Resource: query.Get("resource"), NamespacedName: types.NamespacedName{Namespace: query.Get("namespace"), Name: query.Get("name")}}
		text, err := json.Marshal(engine.ActivityOf(key))
		if err != nil {
			http.Error(into, "the activity cannot be encoded", http.StatusInternalServerError)
			return
		}
		into.Header().Set("Content-Type", "application/json")
		_, _ = into.Write(text) // the client is gone otherwise
	}))
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

package operator

import (
	"crypto/tls"
	"encoding/json"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-go/kopf/pkg/health"
	"github.com/kopf-go/kopf/pkg/health/access"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/shards/ring"
)

// health returns the operator for the health checks.
func (r *replica) health() health.Operator {
	if r.admission == nil {
		return healthState{r}
	}
	return admissionHealth{healthState{r}, r.admission}
}

// healthState is what the readiness depends on.
type healthState struct{ replica *replica }

// State returns the state of the engine, and the shards.
func (h healthState) State() metrics.State { return h.replica.engineState() }

// WatchStatuses returns the states of the watches.
func (h healthState) WatchStatuses() []reconcile.WatchStatus { return h.replica.engine.WatchStatuses() }

// admissionHealth is for an operator whose readiness also depends on its admission handlers.
type admissionHealth struct {
	healthState
	admission *admission
}

// AdmissionProblem returns why the API servers cannot call the handlers, or will not for much longer.
// It is "" if they can.
func (h admissionHealth) AdmissionProblem() string {
	switch {
	case h.admission.isStopping():
		return "the operator is stopping"
	case h.admission.isPublished():
		return ""
	default:
		return "the API servers do not know the address of the admission server yet"
	}
}

// engineState returns the state of the engine, and the shards.
func (r *replica) engineState() metrics.State {
	state := r.engine.State()
	if r.ring != nil {
		state.Shards = r.shards()
	}
	return state
}

// state returns the state of the engine with that of the other parts, for the metrics.
func (r *replica) state() metrics.State {
	state := r.engineState()
	if r.ring != nil {
		state.Shards.Objects = r.engine.ObjectsByShard()
		state.Shards.Streams = r.engine.SharedStreams()
	}
	state.CertificateExpiry = r.admission.certificateExpiry()
	posted := r.recorder.Stats()
	state.Events = metrics.Events{
		Posted: posted.Posted, Suppressed: posted.Suppressed, Dropped: posted.Dropped, Failed: posted.Failed,
	}
	if r.settings.Networking.MaxInFlight > 0 {
		requests := r.operator.window.State()
		state.Requests = &metrics.Requests{
			Window: requests.Size, InFlight: requests.InFlight, Waiting: requests.Waiting, Closed: requests.Closed,
		}
	}
	return state
}

// addActivity serves what the operator is doing, next to its metrics. Only clients that the cluster
// authorizes get it, because it has the names of objects: without that, there is no such endpoint.
// The manager of another program has its own metrics, and may not restrict access to them.
func (r *replica) addActivity(mgr manager.Manager) error {
	m := r.settings.Metrics
	if r.operator.inManager || m.Address == "" || !m.Secure {
		return nil
	}
	return mgr.AddMetricsServerExtraHandler(reconcile.ActivityPath, http.HandlerFunc(func(into http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		key := object.Key{Resource: query.Get("resource"), NamespacedName: types.NamespacedName{Namespace: query.Get("namespace"), Name: query.Get("name")}}
		text, err := json.Marshal(r.activityOf(key, types.UID(query.Get("uid"))))
		if err != nil {
			http.Error(into, "the activity cannot be encoded", http.StatusInternalServerError)
			return
		}
		into.Header().Set("Content-Type", "application/json")
		_, _ = into.Write(text) // the client is gone otherwise
	}))
}

// activityOf returns what the replica is doing for an object, or, without one, for all objects and its shards.
func (r *replica) activityOf(key object.Key, uid types.UID) reconcile.Activity {
	a := r.engine.ActivityOf(key, uid)
	if key.Resource == "" {
		a.Operator = r.engine.ActivityOfAll()
		a.Operator.Missing = r.operator.permissions.Missing()
	}
	if r.ring == nil {
		return a
	}
	state := r.ring.State()
	a.Replica = state.Identity
	if a.Shard != nil {
		addCourse(a.Shard, state)
	}
	if key.Resource != "" {
		return a
	}
	working := r.engine.ActivityOfShards()
	for number, known := range state.Shards {
		if !known.Handled {
			continue
		}
		shard := working[number]
		shard.Number = number
		addCourse(&shard, state)
		a.Shards = append(a.Shards, shard)
	}
	return a
}

// addCourse adds to the activity for a shard what the ring knows.
func addCourse(shard *reconcile.ActiveShard, state ring.State) {
	known := state.Shards[shard.Number]
	shard.Draining = known.Draining
	shard.Leaving = state.Leaving && !known.Draining.IsZero()
	shard.Lost = known.Lost
}

// metricsOptions returns the options for serving the metrics with the operator's own manager.
func metricsOptions(m settings.Metrics) metricsserver.Options {
	if m.Address == "" {
		return metricsserver.Options{BindAddress: "0"} // disabled
	}
	options := metricsserver.Options{BindAddress: m.Address, SecureServing: m.Secure}
	if m.Secure {
		options.FilterProvider = authorize
		// Without old versions of TLS, and without HTTP/2: a single occasional reader does not need many
		// streams in one connection, which only enable attacks.
		options.TLSOpts = []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion = tls.VersionTLS12
			c.NextProtos = []string{"http/1.1"}
		}}
	}
	return options
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

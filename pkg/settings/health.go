package settings

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// DefaultProbeCacheTTL is the default of Health.ProbeCacheTTL.
const DefaultProbeCacheTTL = 10 * time.Second

// DefaultMaxQueueAge is the default of Health.MaxQueueAge.
const DefaultMaxQueueAge = 5 * time.Minute

// Health is what the operator tells the kubelet about itself, over HTTP.
//
// Specification: Health-checks.
type Health struct {
	// Address is where to listen: "127.0.0.1:8080", ":8080". Default: nowhere, for
	// nothing listens unless asked.
	Address string
	// LivenessPath is where the results of the probes are. Default: "/healthz".
	LivenessPath string
	// ReadinessPath is where the state of every watch is. Default: "/readyz".
	ReadinessPath string
	// ProbeCacheTTL is how long the result of a probe is good for other requests. Default:
	// DefaultProbeCacheTTL: the kubelet asks every 10 seconds, and whoever asks more often
	// shall not be able to keep the operator busy.
	ProbeCacheTTL time.Duration
	// MaxQueueAge is how long an object may wait for a worker before the operator is not
	// ready. Default: DefaultMaxQueueAge.
	MaxQueueAge time.Duration
	// ManagerCheck is the name of a check that the operator adds to the readiness of
	// the manager it is added to, beside those of the rest of the program. It needs no
	// Address. Default: none, for pods that are not ready get no admission reviews
	// either, whoever answers them.
	ManagerCheck string
}

// The defaults of the paths of Health.
const (
	DefaultLivenessPath  = "/healthz"
	DefaultReadinessPath = "/readyz"
)

func (h *Health) fill() {
	fill(&h.LivenessPath, DefaultLivenessPath)
	fill(&h.ReadinessPath, DefaultReadinessPath)
	fill(&h.ProbeCacheTTL, DefaultProbeCacheTTL)
	fill(&h.MaxQueueAge, DefaultMaxQueueAge)
}

func (h Health) validate() error {
	var samePath error
	h.fill()
	if h.LivenessPath == h.ReadinessPath {
		samePath = errors.New("settings.Health.LivenessPath and ReadinessPath are the same: " + h.LivenessPath)
	}
	return errors.Join(samePath, h.absolute(), notNegative("Health.ProbeCacheTTL", h.ProbeCacheTTL), notNegative("Health.MaxQueueAge", h.MaxQueueAge))
}

// absolute tells, as an error, whether no request could have one of the paths.
func (h Health) absolute() error {
	if strings.HasPrefix(h.LivenessPath, "/") && strings.HasPrefix(h.ReadinessPath, "/") {
		return nil
	}
	return fmt.Errorf("settings.Health.LivenessPath and ReadinessPath must begin with a slash: %q and %q", h.LivenessPath, h.ReadinessPath)
}

// Metrics is what the operator tells Prometheus.
type Metrics struct {
	// Address is where to listen: "127.0.0.1:9090", ":8443". Default: nowhere, for
	// nothing listens unless asked. Several operators in one process share the
	// metrics; only one of them needs an address.
	Address string
	// Secure serves them by HTTPS, and only to those whom the cluster allows to GET
	// the path /metrics. It takes the permission to create token reviews and subject
	// access reviews. Default: false, so that only the network protects them.
	Secure bool
}

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

// Health configures the health endpoints of the operator.
//
// Specification: Health-checks.
type Health struct {
	// Address is the address to listen at: "127.0.0.1:8080", ":8080". Default: none.
	Address string
	// LivenessPath is the path of the results of the probes. Default: "/healthz".
	LivenessPath string
	// ReadinessPath is the path of the state of every watch. Default: "/readyz".
	ReadinessPath string
	// ProbeCacheTTL is how long the result of a probe is reused for other requests, so that
	// frequent requests cannot keep the operator busy. Default: DefaultProbeCacheTTL, which
	// is the default period of the kubelet.
	ProbeCacheTTL time.Duration
	// MaxQueueAge is how long an object can wait for a worker before the operator reports
	// that it is not ready. Default: DefaultMaxQueueAge.
	MaxQueueAge time.Duration
	// ManagerCheck is the name of a check that the operator adds to the readiness of its
	// manager. It needs no Address. Default: none, because pods that are not ready get no
	// admission reviews for the rest of the program either.
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
	var problems []error
	h.fill()
	if h.LivenessPath == h.ReadinessPath {
		problems = append(problems, errors.New("settings.Health.LivenessPath and ReadinessPath are the same: "+h.LivenessPath))
	}
	if !strings.HasPrefix(h.LivenessPath, "/") || !strings.HasPrefix(h.ReadinessPath, "/") { // no request can have it
		problems = append(problems, fmt.Errorf("settings.Health.LivenessPath and ReadinessPath must begin with a slash: %q and %q", h.LivenessPath, h.ReadinessPath))
	}
	return errors.Join(append(problems, notNegative("Health.ProbeCacheTTL", h.ProbeCacheTTL), notNegative("Health.MaxQueueAge", h.MaxQueueAge))...)
}

// Metrics configures the endpoint for Prometheus.
type Metrics struct {
	// Address is the address to listen at: "127.0.0.1:9090", ":8443". Several operators in
	// one process share the metrics, so only one of them needs an address. Default: none.
	Address string
	// Secure serves the metrics over HTTPS, and only to clients that the cluster allows to
	// GET the path /metrics. It requires the permission to create token reviews and subject
	// access reviews. Default: false: only the network protects the metrics.
	Secure bool
}

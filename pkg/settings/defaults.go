package settings

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/storage"
)

// DefaultName is the field manager of an operator without Settings.Name.
const DefaultName = "kopf"

// The defaults of the settings with the same names.
const (
	DefaultFinalizer          = "kopf.zalando.org/KopfFinalizerMarker"
	DefaultConsistencyTimeout = 5 * time.Second
	DefaultBackoff            = 60 * time.Second
	DefaultCheckpointInterval = time.Second
	DefaultWorkers            = 100
	DefaultMaxCalls           = 5000
	DefaultGracePeriod        = 20 * time.Second
	DefaultShutdownTimeout    = 10 * time.Minute
	DefaultEventBacklog       = 100

	DefaultCancellationPolling = 60 * time.Second
)

// Default returns the settings with all defaults.
func Default() Settings { return Settings{}.WithDefaults() }

// WithDefaults returns the settings with the default in every field that is zero.
func (s Settings) WithDefaults() Settings {
	fill(&s.Scanning.Interval, DefaultScanningInterval)
	fill(&s.Persistence.Finalizer, DefaultFinalizer)
	fill(&s.Persistence.ConsistencyTimeout, DefaultConsistencyTimeout)
	fill(&s.Execution.Backoff, backoff.Constant(DefaultBackoff))
	fill(&s.Execution.CheckpointInterval, DefaultCheckpointInterval)
	fill(&s.Execution.Workers, DefaultWorkers)
	fill(&s.Execution.MaxCalls, DefaultMaxCalls)
	fill(&s.Execution.GracePeriod, DefaultGracePeriod)
	fill(&s.Execution.ShutdownTimeout, DefaultShutdownTimeout)
	fill(&s.Background.CancellationPolling, DefaultCancellationPolling)
	fill(&s.Queueing.EventBacklog, DefaultEventBacklog)
	s.Posting.fill()
	s.Networking.fill()
	s.Watching.fill()
	s.Peering.fill()
	if s.Replicas.LeaseName == "" && len(validation.IsDNS1123Subdomain(s.Name)) == 0 {
		s.Replicas.LeaseName = s.Name
	}
	s.Replicas.fill()
	s.Health.fill()
	s.Admission.fill()
	if s.Persistence.DiffBase == nil {
		s.Persistence.DiffBase = storage.AnnotationsDiffBase{}
	}
	if s.Persistence.Progress == nil {
		s.Persistence.Progress = storage.SmartProgress{}
	}
	if s.Execution.Lifecycle == nil {
		s.Execution.Lifecycle = lifecycles.AllAtOnce
	}
	if s.Queueing.ErrorDelays == nil {
		s.Queueing.ErrorDelays = Fibonacci(time.Second, 10*time.Minute)
	}
	if s.Queueing.ContentionDelays == nil {
		s.Queueing.ContentionDelays = DefaultContentionDelays()
	}
	return s
}

// DefaultContentionDelays returns the default of Queueing.ContentionDelays.
func DefaultContentionDelays() []time.Duration { return Fibonacci(time.Second, 5*time.Minute) }

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Fibonacci returns the sequence 1, 2, 3, 5, 8, … of units, up to the limit. It is empty if
// the unit is not positive.
func Fibonacci(unit, limit time.Duration) []time.Duration {
	var delays []time.Duration
	for a, b := unit, 2*unit; 0 < a && a <= limit; a, b = b, a+b {
		delays = append(delays, a)
	}
	return delays
}

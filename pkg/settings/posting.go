package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The defaults of the settings of Posting.
const (
	DefaultPostingComponent = "kopf"
	DefaultPostingBurst     = 25              // as in the controllers of Kubernetes
	DefaultPostingRefill    = 5 * time.Minute // as in the controllers of Kubernetes
)

// maxInstance is the longest name of an instance that Kubernetes accepts.
const maxInstance = 128

// eventNameSuffix is as long as what follows the prefix in the name of an event.
const eventNameSuffix = "0123456789abcdef"

// Posting configures the Kubernetes events that the operator posts: what its handlers report
// and log, and their outcomes.
//
// Specification: Configuration, "Logging events".
type Posting struct {
	// Disabled stops all events, also those that handlers report. Default: false.
	Disabled bool
	// Level is the level of the least important events that are posted. It applies to the log lines
	// of handlers, where V(n) of logr is the level -n and an error is slog.LevelError, and to
	// kopf.Info, kopf.Warn, and kopf.Exception. It also applies to the events of the operator
	// itself, which have slog.LevelInfo or, for failures, slog.LevelError. Events of other types
	// are always posted. The level of the log does not matter. Default: slog.LevelInfo. The lowest
	// possible level is slog.LevelDebug.
	Level slog.Level
	// WithoutLogs posts no events for the log lines of handlers. Each such event is a write,
	// which adds up in large clusters. Default: false.
	WithoutLogs bool
	// Component is the reporting component of the events. Default: Settings.Name, or the name
	// of the program; if neither is a qualified name of Kubernetes, DefaultPostingComponent,
	// which is also the default of Kopf.
	Component string
	// Instance is the reporting instance of the events, which distinguishes replicas.
	// Default: the name of the host, which is the name of the pod in a cluster.
	Instance string
	// EventNamePrefix begins the names of the events, before some random characters. It has
	// lower-case letters, digits, dashes, and dots. Default: the names begin with that of the
	// object, as those of Kubernetes do.
	EventNamePrefix string
	// Burst is the number of events of one type that an object can have at once. After that,
	// it can have one per Refill. Log lines are counted separately. Default:
	// DefaultPostingBurst.
	Burst int
	// Refill is the time after which an object can have one more event. Default:
	// DefaultPostingRefill.
	Refill time.Duration
}

// Posts reports whether events of the level are posted.
func (p Posting) Posts(level slog.Level) bool { return !p.Disabled && level >= p.Level }

func (p *Posting) fill() {
	fill(&p.Burst, DefaultPostingBurst)
	fill(&p.Refill, DefaultPostingRefill)
}

func (p Posting) validate() error {
	var problems []error
	if p.Level < slog.LevelDebug {
		problems = append(problems, fmt.Errorf("settings.Posting.Level is below slog.LevelDebug: %v", p.Level))
	}
	if faults := validation.IsQualifiedName(p.Component); p.Component != "" && len(faults) > 0 {
		problems = append(problems, fmt.Errorf("settings.Posting.Component %q is not valid: %s", p.Component, faults[0]))
	}
	if len(p.Instance) > maxInstance {
		problems = append(problems, fmt.Errorf("settings.Posting.Instance is longer than %d bytes: %q", maxInstance, p.Instance))
	}
	if faults := validation.IsDNS1123Subdomain(p.EventNamePrefix + eventNameSuffix); len(faults) > 0 {
		problems = append(problems, fmt.Errorf("settings.Posting.EventNamePrefix %q is not valid: %s", p.EventNamePrefix, faults[0]))
	}
	return errors.Join(append(problems, notNegative("Posting.Burst", p.Burst), notNegative("Posting.Refill", p.Refill))...)
}

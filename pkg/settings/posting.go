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
	DefaultPostingBurst     = 25              // as in Kubernetes' own controllers
	DefaultPostingRefill    = 5 * time.Minute // as in Kubernetes' own controllers
)

// maxInstance is how long a name Kubernetes takes for the instance.
const maxInstance = 128

// Posting is what the operator tells as Kubernetes events: what its handlers report
// and log, and what has come of them.
//
// Specification: Configuration, "Logging events".
type Posting struct {
	// Disabled stops all of it, also what handlers report. Default: false.
	Disabled bool
	// Level is that of the least important events that are posted. It is about lines
	// in the log of handlers, where logr's V(n) is the level -n and an error is
	// slog.LevelError; about Info, Warn and Exception; and about the words of the
	// operator itself, which are of slog.LevelInfo or, of failures, slog.LevelError.
	// An event of any other type is always posted. How much is logged does not
	// matter. Default: slog.LevelInfo; who looks at an object should see what its
	// handlers say. slog.LevelDebug is the lowest one: below, libraries log
	// their requests.
	Level slog.Level
	// WithoutLogs keeps the log of handlers out of the events, and nothing else.
	// Default: false. Large clusters may want it: each line is a write.
	WithoutLogs bool
	// Component is who the events are from. Default: DefaultPostingComponent.
	Component string
	// Instance is which of several replicas they are from. Default: the name of the
	// host, which in a pod is the pod's name.
	Instance string
	// Burst is how many events of one type an object can have at once; after that
	// there is one per Refill. Lines of the log are counted apart from the rest.
	// Default: DefaultPostingBurst.
	Burst int
	// Refill is how long it takes until an object can have one more event.
	// Default: DefaultPostingRefill.
	Refill time.Duration
}

// Posts reports whether events of a level are posted.
func (p Posting) Posts(level slog.Level) bool { return !p.Disabled && level >= p.Level }

func (p *Posting) fill() {
	fill(&p.Component, DefaultPostingComponent)
	fill(&p.Burst, DefaultPostingBurst)
	fill(&p.Refill, DefaultPostingRefill)
}

func (p Posting) validate() error {
	var problems []error
	if p.Level < slog.LevelDebug {
		problems = append(problems, fmt.Errorf("settings.Posting.Level is below slog.LevelDebug: %v", p.Level))
	}
	if faults := validation.IsQualifiedName(p.Component); p.Component != "" && len(faults) > 0 {
		problems = append(problems, fmt.Errorf("settings.Posting.Component %q is refused by Kubernetes: %s", p.Component, faults[0]))
	}
	if len(p.Instance) > maxInstance {
		problems = append(problems, fmt.Errorf("settings.Posting.Instance is longer than %d bytes: %q", maxInstance, p.Instance))
	}
	return errors.Join(append(problems, notNegative("Posting.Burst", p.Burst), notNegative("Posting.Refill", p.Refill))...)
}

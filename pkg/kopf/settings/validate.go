package settings

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/kopf/storage"
)

// Validate finds what would make the operator misbehave, all of it at once.
func (s Settings) Validate() error {
	problems := []error{s.Persistence.validate(), s.Queueing.validate()}
	for name, value := range map[string]time.Duration{
		"Persistence.ConsistencyTimeout": s.Persistence.ConsistencyTimeout,
		"Execution.Backoff":              s.Execution.Backoff,
		"Execution.Checkpoint":           s.Execution.Checkpoint,
		"Execution.GracePeriod":          s.Execution.GracePeriod,
		"Networking.RequestTimeout":      s.Networking.RequestTimeout,
	} {
		if value < 0 {
			problems = append(problems, fmt.Errorf("settings.%s is negative: %s", name, value))
		}
	}
	if s.Execution.Workers < 0 {
		problems = append(problems, fmt.Errorf("settings.Execution.Workers is negative: %d", s.Execution.Workers))
	}
	return errors.Join(problems...)
}

func (p Persistence) validate() error {
	return errors.Join(p.validateFinalizer(), validateStorage("DiffBase", p.DiffBase), validateStorage("Progress", p.Progress))
}

func validateStorage(name string, declared any) error {
	validator, ok := declared.(storage.Validator)
	if !ok {
		return nil
	}
	if err := validator.Validate(); err != nil {
		return fmt.Errorf("settings.Persistence.%s: %w", name, err)
	}
	return nil
}

func (p Persistence) validateFinalizer() error {
	if p.Finalizer == "" {
		return nil
	}
	if faults := validation.IsQualifiedName(p.Finalizer); len(faults) > 0 {
		return fmt.Errorf("settings.Persistence.Finalizer %q is refused by Kubernetes: %s; use a name like %q",
			p.Finalizer, faults[0], "my-operator.example.com/finalizer")
	}
	return nil
}

func (q Queueing) validate() error {
	if slices.ContainsFunc(q.ErrorDelays, func(d time.Duration) bool { return d < 0 }) {
		return fmt.Errorf("settings.Queueing.ErrorDelays has a negative pause: %v", q.ErrorDelays)
	}
	if q.EventBacklog < 0 {
		return fmt.Errorf("settings.Queueing.EventBacklog is negative: %d", q.EventBacklog)
	}
	return nil
}
